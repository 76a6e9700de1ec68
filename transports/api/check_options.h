// Checks that hold for the options of every transport.
//
// Pure: any thread.
#pragma once

#include "common/status.h"
#include "transports/api/transport.h"

namespace ferry::transport {

// Errors: kInvalidArgument, with the option's name.
Status CheckOptions(const TransportOptions& options);

}  // namespace ferry::transport
