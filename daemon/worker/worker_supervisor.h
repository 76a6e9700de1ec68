// Looks after the worker processes: starts them, speaks with them, and notices when one dies,
// stands still, or writes nonsense. Then the worker's job has failed, and the others go on.
//
// Everything happens on the supervisor's own thread, which never waits for a worker: messages that
// a worker does not read stay in a queue here. A worker stands still when it has been given
// something to do and has not taken a turn, or not ended any copy, for `timeout_ns`.
//
// Calling thread: any, for all members; none blocks but the destructor, which ends every worker.
#pragma once

#include <sys/types.h>

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "common/status.h"
#include "common/unique_fd.h"
#include "daemon/plane/mailbox.h"
#include "daemon/session/session.h"
#include "daemon/sockets/packet_socket.h"
#include "daemon/worker/worker_channel.h"
#include "daemon/worker/worker_message.h"
#include "daemon/worker/worker_spawn.h"

namespace ferry::daemon {

// Checks the messages of a worker process to ferryd, and their order: first that it is ready, then
// one answer for each rank, and each region of device memory, that it was asked about. A process
// that says anything else is no worker of this release.
//
// Calling thread: the supervisor's. Nothing blocks.

// Takes the answers of a worker.
struct WorkerNews {
  std::function<void(uint32_t rank)> on_reach;
  // kOk: it has imported the region; else why not.
  std::function<void(uint32_t rank, uint32_t region, const Status& status)> on_import;
};

class WorkerReplies {
 public:
  // Call it when kSession is sent for `session`, into which the answer will go.
  void Expect(std::shared_ptr<Session> session);
  // Call it when kDevice is sent for the region.
  void ExpectImport(uint32_t rank, uint32_t region) { imports_.insert({rank, region}); }

  // Reads some of the messages in `socket`, whose other end is `sender`'s, and calls `news` for
  // each answer. kNothing: all was read; kPacket: there may be more. kCorrupt: no worker sends this
  // message; the text follows "the worker process".
  StatusOr<Received> Read(int socket, uid_t sender, const WorkerNews& news);

 private:
  Status Handle(const WorkerMessage& message, const WorkerNews& news);
  Status HandleImport(const WorkerMessage& message, const WorkerNews& news);

  bool ready_ = false;
  std::multiset<std::pair<uint32_t, uint32_t>> imports_;  // rank and region: kImport has not come
  std::map<uint32_t, std::shared_ptr<Session>> asked_;    // by rank: kReach has not come
};

// Asks the system's user database for groups on a thread of its own: behind it may be a directory
// server that does not answer.
//
// Calling thread: any. Nothing blocks but the destructor, which waits for the answer under way.
class GroupLookup {
 public:
  using Source = std::function<std::vector<gid_t>(const WorkerUser& user)>;
  using Done = std::function<void(std::vector<gid_t> groups)>;  // called on the thread

  explicit GroupLookup(Source source);
  ~GroupLookup();  // questions that have not begun never get an answer
  GroupLookup(const GroupLookup&) = delete;
  GroupLookup& operator=(const GroupLookup&) = delete;

  void Ask(const WorkerUser& user, Done done);

 private:
  struct Question {
    WorkerUser user;
    Done done;
  };

  void Loop();

  const Source source_;
  std::mutex mutex_;
  std::condition_variable asked_;
  bool stop_ = false;
  std::deque<Question> questions_;
  std::thread thread_;
};

// One worker process, as the supervisor's callers see it.
struct Worker {
  std::string job_id;
  WorkerUser user;
  std::vector<std::string> environment;  // "NAME=value"
  std::shared_ptr<WorkerChannel> channel;
  std::shared_ptr<RemoteCopier> copier;
};

// A message, with the owner of its descriptors, which lives until the message is sent.
struct WorkerLetter {
  WorkerMessage message;
  std::vector<int> fds;
  std::shared_ptr<const void> owner;
};

struct SupervisorEvents {
  // The job's worker is gone or was given up. Like all these functions, the supervisor's thread
  // calls it, and it must not block.
  std::function<void(const std::string& job_id, ErrorCode error, const std::string& text)>
      on_failed;
  // The worker has found out whether it reaches the rank's private memory (the answer is in
  // Session).
  std::function<void(const std::string& job_id, uint32_t rank)> on_reach;
  // The worker has imported the rank's region, or `status` says why not.
  std::function<void(const std::string& job_id, uint32_t rank, uint32_t region,
                     const Status& status)>
      on_import;
};

class WorkerSupervisor {
 public:
  // `groups` tells a user's groups, and may block: see GroupLookup.
  WorkerSupervisor(uint64_t timeout_ns, SupervisorEvents events,
                   GroupLookup::Source groups = GroupsOf);
  ~WorkerSupervisor();
  WorkerSupervisor(const WorkerSupervisor&) = delete;
  WorkerSupervisor& operator=(const WorkerSupervisor&) = delete;

  // `program`: an open descriptor, kept until the process runs.
  void Start(std::shared_ptr<Worker> worker, std::shared_ptr<UniqueFd> program, WorkerLetter first);
  void Send(std::shared_ptr<Worker> worker, WorkerLetter letter);
  // Sends kSession, whose answer (kReach) goes into the session.
  void SendSession(std::shared_ptr<Worker> worker, std::shared_ptr<Session> session);
  // Sends kDevice, whose answer (kImport) goes to SupervisorEvents::on_import. If the worker fails
  // there is none.
  void SendDevice(std::shared_ptr<Worker> worker, WorkerLetter letter);
  // Ends a worker that wrote what no worker writes; its job fails.
  void Condemn(std::shared_ptr<Worker> worker, std::string text);
  // Ends a worker whose job is over, by force if it does not leave by itself within a second.
  void End(std::shared_ptr<Worker> worker);

 private:
  struct Watched;

  void Loop();
  int PollMs(uint64_t now_ns) const;
  void Check(uint64_t now_ns);
  bool Serve(Watched& watched, bool may_have_ended, short socket_events);
  void Launch(Watched& watched, int program, const std::vector<gid_t>& groups);
  void Flush(Watched& watched);
  void Receive(Watched& watched);
  static void HangUp(Watched& watched);
  void CheckTurns(Watched& watched, uint64_t now_ns);
  void Fail(Watched& watched, const std::string& text);
  Watched* Find(const Worker* worker);
  bool IsEmpty() const { return watched_.empty(); }

  const uint64_t timeout_ns_;
  const SupervisorEvents events_;
  Mailbox mailbox_;
  GroupLookup lookup_;  // ends before the mailbox to which its answers go
  // Used by the thread alone.
  WorkerSpawner spawner_;
  std::vector<std::unique_ptr<Watched>> watched_;
  uint64_t next_check_ns_ = 0;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace ferry::daemon
