// Between strangers and gRPC: passes on what is written to a stream socket, and ends a connection
// - to which somebody passes descriptors. gRPC reads its sockets on threads that serve everybody,
//   and lets the kernel drop descriptors there and then, for as long as that takes (disposal.h);
// - on which a client begins too many calls before gRPC counts them (EarlyCalls).
//
// It looks at what comes next in a socket before it takes it. A thread of its own does that for all
// connections; the price is two copies of each byte.
//
// Any thread, for all members; none blocks but the destructor, which ends all connections.
#pragma once

#include <array>
#include <atomic>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <thread>

#include "common/status.h"
#include "common/unique_fd.h"
#include "daemon/control/http2_frames.h"

namespace ferry::daemon {

// Counts the calls that an HTTP/2 client begins before it has acknowledged the server's settings.
// How many calls it may have open at a time is one of them, and binds it only from then on (RFC
// 9113, section 6.5.3): gRPC lets a client that never acknowledges them open calls without number.
//
// One thread at a time; nothing blocks.
class EarlyCalls {
 public:
  explicit EarlyCalls(uint32_t most) : most_(most) {}

  // Its settings come first: no client can acknowledge them before.
  void OnServerSpoke() { server_spoke_ = true; }
  // The next bytes from the client, however they are cut into pieces. False: it has begun more
  // than `most` calls, and must not be listened to any more.
  bool OnClientSaid(std::span<const std::byte> bytes);

 private:
  void OnFrame(const http2::FrameHeader& header);

  const uint32_t most_;
  uint32_t begun_ = 0;
  bool server_spoke_ = false;
  bool acknowledged_ = false;                   // from now on gRPC counts
  size_t skip_ = http2::kClientPreface.size();  // until the next frame's header
  std::array<char, http2::kFrameHeaderBytes> header_{};
  size_t header_bytes_ = 0;
};

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
