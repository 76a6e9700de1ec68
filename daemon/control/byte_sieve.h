// Between strangers and gRPC: passes on what is written to a stream socket, and ends a connection
// - to which somebody passes descriptors. gRPC reads its sockets on threads that serve everybody,
//   and lets the kernel drop descriptors there and then, for as long as that takes (disposal.h);
// - on which a client begins too many calls before gRPC counts them (early_calls.h).
//
// It looks at what comes next in a socket before it takes it. A thread of its own does that for all
// connections; the price is two copies of each byte.
//
// Any thread, for all members; none blocks but the destructor, which ends all connections.
#pragma once

#include <atomic>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <cstddef>
#include <memory>
#include <optional>
#include <set>
#include <thread>

#include "common/status.h"
#include "common/unique_fd.h"
#include "daemon/control/early_calls.h"

namespace ferry::daemon {

class ByteSieve {
 public:
  ByteSieve();
  ~ByteSieve();
  ByteSieve(const ByteSieve&) = delete;
  ByteSieve& operator=(const ByteSieve&) = delete;

  // Takes a connected stream socket; the result is one for the server, by which it exchanges bytes
  // with whoever is at the other end of `client`. Either end's closing ends both, and so do too
  // many `calls`; without them the bytes need not be HTTP/2. kSystem: no descriptor for it is left,
  // and `client` is as before.
  StatusOr<UniqueFd> Pass(UniqueFd&& client, std::optional<EarlyCalls> calls = {});
  size_t connections() const { return connections_.load(); }

 private:
  class Stream;
  friend class Stream;

  boost::asio::io_context context_{1};
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_;
  std::atomic<size_t> connections_ = 0;
  // The thread's.
  std::set<std::shared_ptr<Stream>> streams_;
  std::unique_ptr<std::byte[]> scratch_;  // of whichever stream has its turn
  std::thread thread_;
};

}  // namespace ferry::daemon
