// The process's one connection to its job, for the files that make up libferry.
#pragma once

#include <atomic>

#include "client/c_api/last_error.h"
#include "client/rank/client.h"
#include "common/error_code.h"
#include "common/status.h"
#include "include/ferry/ferry.h"
#include "shm/debug_session.h"

namespace ferry::client {

struct Connection {
  enum class Phase { kBefore, kRunning, kAfter };

  std::atomic<Phase> phase{Phase::kBefore};
  std::atomic<bool> is_forked{false};
  // Owned; it ends with ferry_finalize alone. A process that ends without keeps it: handlers of
  // atexit and static objects of the program may call ferry_finalize yet, and threads use it to the
  // end. Null in a forked child.
  Client* client = nullptr;
};

// Hidden: each call of the C API looks at it, without the table of addresses that other libraries
// could change.
[[gnu::visibility("hidden")]] extern constinit Connection connection;

inline bool IsRunning() {
  return connection.phase.load(std::memory_order_acquire) == Connection::Phase::kRunning &&
         !connection.is_forked.load(std::memory_order_relaxed);
}

// Explains why IsRunning is false: as Running.
Status WhyNotRunning();
inline Status CheckRunning() {
  if (IsRunning()) [[likely]] {
    return {};
  }
  return WhyNotRunning();
}

// Shows debuggers where the session of the rank is; null: it has none any more.
void ShowSession(const Client* client);

// Returns the connection. kNotInitialized before ferry_init and after ferry_finalize, kForked in a
// child. Any thread.
StatusOr<Client*> Running();

// kInvalidRank for a rank that the job does not have. Only while IsRunning.
Status CheckRank(int rank, bool any_allowed);

// Turns the result of a call of `connection.client` into that of the C API.
int Report(ErrorCode error);

// Calls `use(client)` and returns its Status as the C API does. Any thread.
template <typename Use>
int WithClient(Use&& use) {
  const StatusOr<Client*> client = Running();
  const Status status = client.ok() ? use(**client) : client.status();
  return status.ok() ? FERRY_SUCCESS : Fail(status);
}

}  // namespace ferry::client
