// The sentences of errors that reach the C API as a mere code.
#pragma once

#include "client/core/client.h"
#include "common/status.h"

namespace ferry::client {

// What the error of a call, or of a request, means for the caller of `client`. Any thread; blocks
// for a moment where the daemon is about to say why.
Status Explain(ErrorCode error, const Client& client);

}  // namespace ferry::client
