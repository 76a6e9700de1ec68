// The process' one connection, for the files that make up libferry.
#pragma once

#include "client/core/client.h"
#include "common/status.h"

namespace ferry::client {

// kNotInitialized before ferry_init and after ferry_finalize, kForked in a child. Any thread.
StatusOr<Client*> Running();

}  // namespace ferry::client
