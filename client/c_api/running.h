// The process's one connection to its job, for the files that make up libferry.
#pragma once

#include "client/c_api/last_error.h"
#include "client/rank/client.h"
#include "common/status.h"
#include "include/ferry/ferry.h"

namespace ferry::client {

// Returns the connection. kNotInitialized before ferry_init and after ferry_finalize, kForked in a
// child. Any thread.
StatusOr<Client*> Running();

// Calls `use(client)` and returns its Status as the C API does. Any thread.
template <typename Use>
int WithClient(Use&& use) {
  const StatusOr<Client*> client = Running();
  const Status status = client.ok() ? use(**client) : client.status();
  return status.ok() ? FERRY_SUCCESS : Fail(status);
}

}  // namespace ferry::client
