// libfabric's error numbers as ours.
#pragma once

#include <string>

#include "common/error_code.h"
#include "common/status.h"

namespace ferry::transport {

// Our code for a failed post or completion. `fabric_error` is positive (FI_ECANCELED, ...).
ErrorCode OperationError(int fabric_error);

// The status of a failed set-up call: "what: words of libfabric". The sign of `fabric_error` does
// not matter.
Status SetUpError(int fabric_error, const std::string& what);

}  // namespace ferry::transport
