// libfabric's error numbers as ours.
#pragma once

#include <string>

#include "common/error_code.h"
#include "common/status.h"

namespace ferry::transport {

// What a failed post or completion means. `fabric_error` is positive (FI_ECANCELED, ...).
ErrorCode OperationError(int fabric_error);

// A failed set-up call: "what: words of libfabric". Sign of `fabric_error` does not matter.
Status SetUpError(int fabric_error, const std::string& what);

}  // namespace ferry::transport
