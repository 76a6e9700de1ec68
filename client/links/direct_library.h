// Opens the library that has the rank's own core and endpoint (client/direct): libferry_direct.so
// for sockets of Ferry's own, libferry_direct_ofi.so for libfabric.
//
// Calling thread: any. Blocks while the loader works: milliseconds.
#pragma once

#include <string>

#include "client/direct/direct_api.h"
#include "common/status.h"

namespace ferry::client {

// kNotFound: it cannot be opened; kVersionMismatch: it is of another release. It stays in memory
// for the life of the process.
StatusOr<const DirectApi*> LoadDirectLibrary(const std::string& provider);

}  // namespace ferry::client
