// The attach socket (proto/attach_protocol.h), by which ranks and launchers identify themselves,
// and a rank hands over its segments, shows that it lives, and calls its daemon.
//
// One connection per rank or launcher, open for its life. A rank's ends with the rank's process
// (common/process_handle.h) or its hang-up, whichever comes first; any data there that are not a
// correct packet end that one connection with a message. A connection that has not attached within
// `attach_timeout_ms` ends too, and so does a rank that has not handed over its segments within as
// long again. connection_acceptor.h limits the number of connections.
//
// Thread: the control thread; nothing blocks but mmap and the data plane's answers. A
// question that would, as the one to other daemons what a rank waits for, has a thread of its own.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>

#include "common/status.h"
#include "common/unique_fd.h"
#include "daemon/jobs/job_registry.h"
#include "daemon/jobs/launchers.h"
#include "daemon/services/question_gate.h"
#include "daemon/session/memory_guard.h"
#include "daemon/sockets/connection_acceptor.h"

namespace ferry::daemon {

class AttachConnection;

class AttachServer {
 public:
  // All must outlive it.
  AttachServer(boost::asio::io_context& context, JobRegistry& registry, Launchers& launchers,
               uint64_t attach_timeout_ms, const ConnectionLimits& limits);
  ~AttachServer();

  // Sets the address at which other daemons reach this one (UserReply). Before Listen.
  void set_control_address(std::string address) { control_address_ = std::move(address); }
  // Sets the function that describes in a sentence what a rank waits for (kWhy). It is called on a
  // thread of its own, may block, and must outlive the server. Without it such calls are refused.
  // Before Listen.
  using Why = std::function<StatusOr<std::string>(const Session& session)>;
  void set_why(Why why) { why_ = std::move(why); }
  // Makes the socket at `path`, for every user or only for ours and root (whether a uid may attach
  // is decided later, by job).
  Status Listen(const std::string& path, bool for_all);
  // Closes the socket and all connections; ranks see a hang-up.
  void Stop();

  size_t connections() const { return connections_.size(); }
  // Threads that ask what ranks wait for. The server must not end before they are gone.
  size_t questions() const { return questions_.size(); }

 private:
  friend class AttachConnection;
  void WatchMemory();
  void Take(UniqueFd fd, const Caller& caller);
  void Refuse(UniqueFd fd, const Caller& caller, const Status& why);
  void Remove(const std::shared_ptr<AttachConnection>& connection);
  // Calls `done` with what `session` waits for, later. kLimitExceeded, kUnsupported, kSystem.
  Status AskWhy(std::shared_ptr<Session> session,
                std::function<void(const StatusOr<std::string>& verdict)> done);

  boost::asio::io_context& context_;
  JobRegistry& registry_;
  Launchers& launchers_;
  const uint64_t attach_timeout_ms_;
  UniqueFd daemon_pidfd_;         // handed to ranks; not valid where the system has none
  const uint32_t pid_namespace_;  // ours, as in attach::AttachRequest
  const uint32_t user_namespace_;
  MemoryWatch memory_;                                   // of the ranks
  boost::asio::posix::stream_descriptor memory_events_;  // its descriptor
  std::string control_address_;
  Why why_;
  QuestionGate gate_;
  uint64_t next_question_ = 0;
  std::map<uint64_t, std::thread> questions_;
  std::set<std::shared_ptr<AttachConnection>> connections_;
  ConnectionAcceptor acceptor_;
};

}  // namespace ferry::daemon
