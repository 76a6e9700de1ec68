// Between strangers and gRPC: passes on what is written to a stream socket, and ends a connection
// - to which the client passes descriptors. gRPC reads its sockets on threads that serve all
//   clients, and lets the kernel drop descriptors there and then, for as long as that takes
//   (disposal.h);
// - by which a client of HTTP/2 sends more than it may (http2_guard.h), or makes gRPC wait;
// - whose other end shows no good certificate, where it has to (tls_session.h).
// gRPC hears of a connection only once its client has greeted.
//
// It looks at what comes next in a socket before it takes it. A thread of its own does that for all
// connections; the price is two copies of each byte.
//
// Any thread, for all members; none blocks but the destructor, which ends all connections.
#pragma once

#include <atomic>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>

#include "common/log.h"
#include "common/status.h"
#include "common/unique_fd.h"
#include "daemon/grpc/http2_guard.h"
#include "daemon/tls/tls_session.h"

namespace ferry::daemon {

class ByteSieve {
 public:
  struct Limits {
    uint64_t calls_of_caller = kCallsOfConnection;  // open at a time, on all connections together
    // Connections whose client still owes its certificate.
    size_t unproved_of_caller = 64;
    size_t unproved = 512;
  };
  // `socket` names the sieve's socket in messages.
  ByteSieve(std::string socket, const Limits& limits);
  ~ByteSieve();
  ByteSieve(const ByteSieve&) = delete;
  ByteSieve& operator=(const ByteSieve&) = delete;

  // Takes a connected stream socket; the result is one for the server, by which it exchanges bytes
  // with whoever is at the other end of `client`. Either end's closing ends both. kSystem: no
  // descriptor for it is left, and `client` is as before.
  StatusOr<UniqueFd> Pass(UniqueFd&& client);

  // A client that has to speak HTTP/2, for Admit.
  struct Guest {
    std::string caller;  // who is at the other end
    // If set, the client has to speak TLS and to show a certificate, and the server gets the bytes
    // inside. Where too many clients have not shown theirs yet, the oldest of them gives way to a
    // new one: so silent clients keep no other out.
    std::shared_ptr<SSL_CTX> tls;
    std::chrono::milliseconds greeting_timeout{};  // until it has greeted; then it is hung up on
    // The sieve's thread calls it with the server's socket once the client has greeted.
    std::function<void(UniqueFd server)> ready;
  };
  Status Admit(UniqueFd&& client, Guest guest);
  // Returns the certificate (PEM) of the client whose server's socket has this address of the other
  // end, as gRPC names it; empty if the client has shown none.
  std::string CertificateOf(const std::string& peer) const;
  size_t connections() const { return connections_.load(); }

 private:
  class Stream;
  friend class Stream;

  Status Take(UniqueFd&& client, std::optional<Guest> guest, UniqueFd* server);
  std::shared_ptr<Http2Caller> FindCaller(const std::string& name);
  void MakeRoomFor(const std::string& caller);
  void GiveBackMemoryLater();

  const std::string socket_;
  const Limits limits_;
  boost::asio::io_context context_{1};
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_;
  std::atomic<size_t> connections_ = 0;
  mutable std::mutex mutex_;
  std::map<std::string, std::string> certificates_;  // by address
  // Only the sieve's thread uses these.
  std::set<std::shared_ptr<Stream>> streams_;
  std::map<std::string, std::shared_ptr<Http2Caller>> callers_;
  std::list<Stream*> unproved_;                // oldest first
  size_t many_callers_ = 64;                   // then those who left are forgotten
  boost::asio::steady_timer quiet_{context_};  // until memory is given back
  bool gives_back_ = false;
  RateLimiter refusals_{10, 1'000'000'000};
  std::unique_ptr<std::byte[]> scratch_;  // of whichever stream has its turn
  std::thread thread_;
};

}  // namespace ferry::daemon
