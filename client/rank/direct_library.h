// Opens libferry_direct.so, which has the rank's own core and endpoint (client/direct).
//
// Calling thread: any. Blocks while the loader works: milliseconds.
#pragma once

#include "client/direct/direct_api.h"
#include "common/status.h"

namespace ferry::client {

// kNotFound: it cannot be opened; kVersionMismatch: it is of another release. It stays in memory
// for the life of the process.
StatusOr<const DirectApi*> LoadDirectLibrary();

}  // namespace ferry::client
