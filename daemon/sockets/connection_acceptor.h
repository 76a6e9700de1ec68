// Accepts the connections to one socket of the control plane, so that no client can keep the others
// out.
//
// The number of open connections is limited for each user, and for all together. A connection
// counts until the descriptor handed on is closed by its new owner, or given up (Forget). When the
// process has no descriptor left, it uses a spare one to refuse new connections in words; once
// there are some again, it goes on as before. Without memory it tries again ten times a second.
//
// Thread: the control thread, or any before that starts; nothing blocks.
#pragma once

#include <sys/types.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/log.h"
#include "common/status.h"
#include "common/unique_fd.h"

namespace ferry::daemon {

// The user whose process, on this machine, is at the other end of a TCP connection. Nothing when
// that end is on another machine, or has closed its socket already, or when the kernel does not
// tell. Any thread; asks the kernel (sock_diag) and does not block.
std::optional<uid_t> LocalUserOf(int tcp_socket);

// Returns true if accept4 has failed with this error because the process, or the machine, has no
// descriptor or memory left. The connection still waits, so one who tries again at once only burns
// the processor.
bool LacksRoom(int error);

// The most open connections: of one user, and of all together.
struct ConnectionLimits {
  uint64_t of_user = 0;
  uint64_t in_all = 0;
};

// The caller at the other end of a connection.
struct Caller {
  std::string name;  // "uid 1000"; over TCP from another machine "address 10.0.0.7"
  uid_t uid = static_cast<uid_t>(-1);
  gid_t gid = static_cast<gid_t>(-1);  // of callers at Unix sockets only
  pid_t pid = 0;                       // 0: not known
};

class ConnectionAcceptor {
 public:
  struct Handlers {
    // Takes a connection, and its descriptor.
    std::function<void(UniqueFd, const Caller&)> take;
    // Says why it is refused. May keep the descriptor for a moment.
    std::function<void(UniqueFd, const Caller&, const Status& why)> refuse;
    // Closes a descriptor that `refuse` has kept, if there is one. May be empty.
    std::function<void()> make_room;
  };

  // `socket` names it in messages: "the attach socket".
  ConnectionAcceptor(boost::asio::io_context& context, std::string socket,
                     const ConnectionLimits& limits, Handlers handlers);
  ~ConnectionAcceptor() { Stop(); }

  // `listener` is nonblocking and listens, at a Unix or a TCP address. Begins to accept.
  void Start(UniqueFd listener);
  // Counts a connection no more, whose owner has given it up and need not wait until its descriptor
  // is closed.
  void Forget(int fd);
  // Names the callers that have connections open: "uid 0", or "uid 0 or uid 1000".
  std::string Callers();
  // Closes the listening socket; connections stay.
  void Stop();
  // The reason for which a connection is refused when the process has too few descriptors.
  static Status OutOfDescriptors();

 private:
  // Identifies a connection, so that its descriptor is known to be open still.
  struct Open {
    int fd;
    ino_t inode;
  };

  void AcceptSoon();
  void AcceptSome();
  void Accept(UniqueFd fd);
  bool HasSpare();
  bool RefuseOne();
  void RefuseForWantOfDescriptors(UniqueFd fd);
  void RetryLater(const char* lack);
  Status CheckLimits(const Caller& caller);
  // Returns how many of the connections are still open; forgets the others.
  static size_t CountOpen(std::vector<Open>& connections);

  boost::asio::io_context& context_;
  const std::string socket_;
  const ConnectionLimits limits_;
  const Handlers handlers_;
  UniqueFd spare_;
  boost::asio::posix::stream_descriptor listener_;
  std::optional<boost::asio::steady_timer> retry_;  // while we are out of descriptors
  std::map<std::string, std::vector<Open>> open_;   // by caller; some may be closed by now
  uint64_t counted_ = 0;                            // in open_
  RateLimiter shortages_{1, 1'000'000'000};
};

}  // namespace ferry::daemon
