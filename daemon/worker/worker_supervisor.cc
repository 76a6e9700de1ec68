#include "daemon/worker/worker_supervisor.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <algorithm>
#include <cctype>

#include "common/clock.h"
#include "common/thread.h"
#include "common/version.h"
#include "shm/atomic.h"

namespace ferry::daemon {
namespace {

constexpr int kMessagesAtOnce = 16;

Status Wrong(const std::string& text) { return {ErrorCode::kCorrupt, text}; }

constexpr uint64_t kNsPerMs = 1'000'000;
constexpr uint64_t kGraceNs = 1'000 * kNsPerMs;  // for a worker to leave by itself
// The time for the kernel to end a killed worker, which may take long on a loaded machine.
constexpr uint64_t kEndNs = 30'000 * kNsPerMs;
constexpr uint64_t kHangUpNs = 100 * kNsPerMs;
constexpr uint64_t kChecksPerTimeout = 8;
constexpr uint64_t kEndLookNs = 10 * kNsPerMs;  // at one that is ending, without a handle of it
constexpr uint64_t kStartTimeouts = 5;          // a directory server may be slow

std::string HowItEnded(const siginfo_t& info, const Worker& worker) {
  if (info.si_code != CLD_EXITED) {
    return "was killed by signal " + std::to_string(info.si_status) + " (" +
           strsignal(info.si_status) + ")";
  }
  switch (info.si_status) {
    case kExitNoUser:
      return "could not become uid " + std::to_string(worker.user.uid) + ", gid " +
             std::to_string(worker.user.gid) +
             ": ferryd must be root, or have CAP_SETUID and CAP_SETGID";
    case kExitNoProgram:
      return "could not be executed: all users must be allowed to execute ferry-worker, and this "
             "one must have a process left (ulimit -u)";
    case kExitNoIsolation:
      return "could not be cut off from ferryd: a system call that this needs is refused";
    default:
      return "ended with status " + std::to_string(info.si_status);
  }
}

}  // namespace

// ---- WorkerReplies ----

void WorkerReplies::Expect(std::shared_ptr<Session> session) {
  asked_[session->rank] = std::move(session);
}

StatusOr<Received> WorkerReplies::Read(int socket, uid_t sender, const WorkerNews& news) {
  for (int i = 0; i < kMessagesAtOnce; ++i) {
    ForeignPacket packet(sender);
    const StatusOr<Received> received = ReceiveForeignPacket(socket, &packet);
    if (!received.ok()) {
      return Wrong("sent what no worker sends: " + received.status().message());
    }
    if (*received != Received::kPacket) {
      return *received;
    }
    const auto* message = packet.As<WorkerMessage>();
    if (message == nullptr || message->magic != kWorkerMagic || !packet.fds.empty()) {
      return Wrong("sent what no worker sends");
    }
    FERRY_RETURN_IF_ERROR(Handle(*message, news));
  }
  return Received::kPacket;
}

Status WorkerReplies::Handle(const WorkerMessage& message, const WorkerNews& news) {
  const auto kind = static_cast<WorkerMessageKind>(message.kind);
  if (kind == WorkerMessageKind::kReady && !ready_) {
    ready_ = true;
    return message.layout_version == kLayoutVersion
               ? Status()
               : Wrong("is of another release than ferryd: install both from the same one");
  }
  if (ready_ && kind == WorkerMessageKind::kImport) {
    return HandleImport(message, news);
  }
  const auto asked = asked_.find(message.rank);
  if (!ready_ || asked == asked_.end()) {
    return Wrong("answers what it was not asked");
  }
  if (kind == WorkerMessageKind::kTrouble) {
    return Wrong("cannot use the memory of a rank of its job");
  }
  if (kind != WorkerMessageKind::kReach) {
    return Wrong("sent a message of an unknown kind");
  }
  Session& session = *asked->second;
  session.private_memory_reachable = message.code == 0;
  session.reach_settled = true;
  asked_.erase(asked);  // `session` may go with it
  news.on_reach(message.rank);
  return {};
}

Status WorkerReplies::HandleImport(const WorkerMessage& message, const WorkerNews& news) {
  const auto asked = imports_.find({message.rank, message.region});
  if (asked == imports_.end()) {
    return Wrong("answers what it was not asked");
  }
  imports_.erase(asked);
  if (message.code == 0) {
    news.on_import(message.rank, message.region, {});
    return {};
  }
  // For a log: the job's user may have written it.
  std::string text(message.text, strnlen(message.text, sizeof(message.text)));
  std::replace_if(
      text.begin(), text.end(), [](unsigned char c) { return std::isprint(c) == 0; }, '?');
  news.on_import(message.rank, message.region, {ErrorCode::kSystem, text});
  return {};
}

// ---- GroupLookup ----

GroupLookup::GroupLookup(Source source)
    : source_(std::move(source)), thread_(MakeThread("ferry-groups", [this] { Loop(); })) {}

GroupLookup::~GroupLookup() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  asked_.notify_one();
  thread_.join();
}

void GroupLookup::Ask(const WorkerUser& user, Done done) {
  {
    std::lock_guard lock(mutex_);
    questions_.push_back({user, std::move(done)});
  }
  asked_.notify_one();
}

void GroupLookup::Loop() {
  std::unique_lock lock(mutex_);
  while (true) {
    asked_.wait(lock, [this] { return stop_ || !questions_.empty(); });
    if (stop_) {
      return;
    }
    const Question question = std::move(questions_.front());
    questions_.pop_front();
    lock.unlock();
    question.done(source_(question.user));
    lock.lock();
  }
}

// ---- WorkerSupervisor ----

struct WorkerSupervisor::Watched {
  std::shared_ptr<Worker> worker;
  SpawnedWorker process;
  std::deque<WorkerLetter> outbox;
  WorkerReplies replies;
  bool failed = false;
  bool ending = false;
  bool hung_up = false;
  uint64_t kill_at_ns = UINT64_MAX;
  uint64_t give_up_at_ns = UINT64_MAX;
  uint64_t turns = 0;  // when last looked
  uint64_t moved_ns = 0;
  uint64_t unsent_since_ns = 0;

  bool over() const { return failed || ending; }
  bool is_started() const { return process.pid > 0; }
  int socket() const { return worker->channel->socket(); }
  // Kills the worker. It keeps its pid until it is reaped, which ends this Watched.
  void Kill() const { kill(process.pid, SIGKILL); }
  // Returns true if the worker is about to end, and no event will tell of that.
  bool must_be_looked_at() const {
    return is_started() && !process.pidfd.valid() && (over() || hung_up);
  }
};

WorkerSupervisor::WorkerSupervisor(uint64_t timeout_ns, SupervisorEvents events,
                                   GroupLookup::Source groups)
    : timeout_ns_(timeout_ns),
      events_(std::move(events)),
      lookup_(std::move(groups)),
      thread_(MakeThread("ferry-workers", [this] { Loop(); })) {}

WorkerSupervisor::~WorkerSupervisor() {
  mailbox_.Post([this] {
    stop_ = true;
    for (const auto& watched : watched_) {
      watched->ending = true;
      watched->kill_at_ns = std::min(watched->kill_at_ns, MonotonicNs() + kGraceNs);
      shutdown(watched->socket(), SHUT_RDWR);
    }
  });
  thread_.join();
}

// ---- For other threads -------------------------------------------------------------------------

void WorkerSupervisor::Start(std::shared_ptr<Worker> worker, std::shared_ptr<UniqueFd> program,
                             WorkerLetter first) {
  mailbox_.Post(
      [this, worker = std::move(worker), program = std::move(program), first = std::move(first)] {
        Watched& watched = *watched_.emplace_back(std::make_unique<Watched>());
        watched.worker = worker;
        watched.outbox.push_back(first);
        watched.moved_ns = MonotonicNs();
        lookup_.Ask(worker->user, [this, worker, program](const std::vector<gid_t>& groups) {
          mailbox_.Post([this, worker, program, groups] {
            if (Watched* found = Find(worker.get()); found != nullptr && !found->over()) {
              Launch(*found, program->get(), groups);
            }
          });
        });
      });
}

void WorkerSupervisor::Send(std::shared_ptr<Worker> worker, WorkerLetter letter) {
  mailbox_.Post([this, worker = std::move(worker), letter = std::move(letter)] {
    if (Watched* watched = Find(worker.get()); watched != nullptr) {
      watched->outbox.push_back(letter);
      Flush(*watched);
    }
  });
}

void WorkerSupervisor::SendSession(std::shared_ptr<Worker> worker,
                                   std::shared_ptr<Session> session) {
  WorkerLetter letter{MakeWorkerMessage(WorkerMessageKind::kSession), {}, session};
  letter.message.rank = session->rank;
  letter.message.lane = session->local_index;
  letter.message.pid = session->pid;
  letter.message.size_bytes = session->session_map.size_bytes();
  letter.message.inbox_bytes = session->inbox_map.size_bytes();
  letter.fds = {session->session_fd.get(), session->inbox_fd.get()};
  mailbox_.Post(
      [this, worker = std::move(worker), session = std::move(session), letter = std::move(letter)] {
        if (Watched* watched = Find(worker.get()); watched != nullptr) {
          watched->replies.Expect(session);
          watched->outbox.push_back(letter);
          Flush(*watched);
        }
      });
}

void WorkerSupervisor::SendDevice(std::shared_ptr<Worker> worker, WorkerLetter letter) {
  mailbox_.Post([this, worker = std::move(worker), letter = std::move(letter)] {
    if (Watched* watched = Find(worker.get()); watched != nullptr) {
      watched->replies.ExpectImport(letter.message.rank, letter.message.region);
      watched->outbox.push_back(letter);
      Flush(*watched);
    }
  });
}

void WorkerSupervisor::Condemn(std::shared_ptr<Worker> worker, std::string text) {
  mailbox_.Post([this, worker = std::move(worker), text = std::move(text)] {
    if (Watched* watched = Find(worker.get()); watched != nullptr) {
      Fail(*watched, text);
    }
  });
}

void WorkerSupervisor::End(std::shared_ptr<Worker> worker) {
  mailbox_.Post([this, worker = std::move(worker)] {
    if (Watched* watched = Find(worker.get()); watched != nullptr) {
      watched->ending = true;
      watched->kill_at_ns = MonotonicNs() + kGraceNs;
      shutdown(watched->socket(), SHUT_RDWR);  // a hang-up for the worker
    }
  });
}

// ---- The thread --------------------------------------------------------------------------------

void WorkerSupervisor::Loop() {
  std::vector<pollfd> fds;
  while (!stop_ || !IsEmpty()) {
    mailbox_.Open();
    fds.clear();
    fds.push_back({mailbox_.fd(), POLLIN, 0});
    for (const auto& watched : watched_) {
      const bool unsent = !watched->outbox.empty() && watched->is_started();
      fds.push_back({watched->process.pidfd.get(), POLLIN, 0});
      const bool deaf = watched->over() || watched->hung_up;
      fds.push_back({deaf ? -1 : watched->socket(),
                     static_cast<short>(unsent ? POLLIN | POLLOUT : POLLIN), 0});
    }
    const size_t polled = watched_.size();
    if (poll(fds.data(), fds.size(), PollMs(MonotonicNs())) >= 0) {
      if (fds[0].revents != 0) {
        mailbox_.Silence();
      }
      size_t index = polled;
      while (index-- > 0) {
        Watched& watched = *watched_[index];
        const bool may_have_ended =
            fds[1 + 2 * index].revents != 0 || !watched.process.pidfd.valid();
        if (!Serve(watched, may_have_ended, fds[2 + 2 * index].revents)) {
          watched_.erase(watched_.begin() + static_cast<ptrdiff_t>(index));
        }
      }
    }
    Check(MonotonicNs());
  }
}

int WorkerSupervisor::PollMs(uint64_t now_ns) const {
  if (IsEmpty()) {
    return stop_ ? 0 : -1;
  }
  uint64_t next_ns = next_check_ns_;
  for (const auto& watched : watched_) {
    next_ns = std::min({next_ns, watched->kill_at_ns, watched->give_up_at_ns});
    if (watched->must_be_looked_at()) {
      next_ns = std::min(next_ns, now_ns + kEndLookNs);
    }
  }
  return next_ns <= now_ns ? 0 : static_cast<int>((next_ns - now_ns) / kNsPerMs + 1);
}

void WorkerSupervisor::Check(uint64_t now_ns) {
  const bool look = now_ns >= next_check_ns_;
  // Looks are regular, unless we stood still ourselves: then the workers get their time anew.
  const bool late = look && now_ns - next_check_ns_ > timeout_ns_ / 2;
  if (look) {
    next_check_ns_ = now_ns + timeout_ns_ / kChecksPerTimeout;
  }
  std::erase_if(watched_, [&](const auto& watched) {
    const bool never_started = watched->over() && !watched->is_started();
    // The kernel does not let go of it; init will reap it.
    return never_started || (stop_ && now_ns > watched->give_up_at_ns);
  });
  for (const auto& watched : watched_) {
    if (late) {
      watched->moved_ns = now_ns;
    } else if (look && !watched->over()) {
      CheckTurns(*watched, now_ns);
    }
    if (now_ns >= watched->kill_at_ns) {
      watched->kill_at_ns = UINT64_MAX;
      watched->give_up_at_ns = now_ns + kEndNs;
      watched->Kill();
    }
  }
}

// False: it is gone, and reaped.
bool WorkerSupervisor::Serve(Watched& watched, bool may_have_ended, short socket_events) {
  if (may_have_ended && watched.is_started()) {
    siginfo_t info{};
    if (waitid(P_PID, static_cast<id_t>(watched.process.pid), &info, WEXITED | WNOHANG | WNOWAIT) ==
            0 &&
        info.si_pid != 0) {
      Fail(watched, HowItEnded(info, *watched.worker));
      waitpid(watched.process.pid, nullptr, 0);
      return false;
    }
  }
  if ((socket_events & POLLIN) != 0) {
    Receive(watched);
  } else if ((socket_events & (POLLHUP | POLLERR)) != 0) {
    HangUp(watched);
  }
  if ((socket_events & POLLOUT) != 0) {
    Flush(watched);
  }
  return true;
}

void WorkerSupervisor::Launch(Watched& watched, int program, const std::vector<gid_t>& groups) {
  const Worker& worker = *watched.worker;
  StatusOr<SpawnedWorker> spawned =
      spawner_.Spawn(program, worker.user, groups, worker.channel->worker_socket().get(),
                     worker.job_id, worker.environment);
  worker.channel->worker_socket().Reset();
  if (!spawned.ok()) {
    Fail(watched, "cannot be started: " + spawned.status().message());
    return;
  }
  watched.process = std::move(*spawned);
  watched.moved_ns = MonotonicNs();
  Flush(watched);
}

void WorkerSupervisor::Flush(Watched& watched) {
  if (watched.over()) {
    watched.outbox.clear();
    return;
  }
  if (!watched.is_started()) {
    return;  // no process reads yet: see CheckTurns
  }
  uint64_t sent = 0;
  while (!watched.outbox.empty()) {
    const WorkerLetter& letter = watched.outbox.front();
    const Status status =
        SendPacket(watched.socket(), std::as_bytes(std::span(&letter.message, 1)), letter.fds);
    if (!status.ok()) {
      break;  // full (or it is gone, which shows elsewhere): see CheckTurns
    }
    watched.outbox.pop_front();
    ++sent;
  }
  if (sent != 0) {
    WorkerChannel& channel = *watched.worker->channel;
    // Adds as many as the worker will count. Pairs with WorkerProgram::Sleep.
    shm::FetchAdd(channel.control()->messages, sent, std::memory_order_seq_cst);
    channel.Rouse();
  }
  if (watched.outbox.empty()) {
    watched.unsent_since_ns = 0;
  } else if (sent != 0 || watched.unsent_since_ns == 0) {
    watched.unsent_since_ns = MonotonicNs();
  }
}

// Its end follows, and says more; if none does, it is made to end.
void WorkerSupervisor::HangUp(Watched& watched) {
  watched.hung_up = true;
  watched.kill_at_ns = std::min(watched.kill_at_ns, MonotonicNs() + kHangUpNs);
}

void WorkerSupervisor::Receive(Watched& watched) {
  WorkerNews news;
  news.on_reach = [&](uint32_t rank) {
    if (events_.on_reach) {
      events_.on_reach(watched.worker->job_id, rank);
    }
  };
  news.on_import = [&](uint32_t rank, uint32_t region, const Status& status) {
    if (events_.on_import) {
      events_.on_import(watched.worker->job_id, rank, region, status);
    }
  };
  const StatusOr<Received> received =
      watched.replies.Read(watched.socket(), watched.worker->user.uid, news);
  if (!received.ok()) {
    Fail(watched, received.status().message());
  } else if (*received == Received::kHangUp) {
    HangUp(watched);
  }
}

// ---- Failures ----------------------------------------------------------------------------------

void WorkerSupervisor::CheckTurns(Watched& watched, uint64_t now_ns) {
  const WorkerControlLayout& control = *watched.worker->channel->control();
  const uint64_t turns = shm::LoadRelaxed(control.turns);
  const bool sleeps = shm::LoadRelaxed(control.sleeping) != 0;
  if (sleeps || turns != watched.turns) {
    watched.turns = turns;
    watched.moved_ns = now_ns;
  }
  if (!watched.is_started()) {
    if (now_ns > watched.moved_ns + kStartTimeouts * timeout_ns_) {
      Fail(watched,
           "was not started: the system's user database has not told the groups of its user for "
           "more than " +
               std::to_string(kStartTimeouts * timeout_ns_ / kNsPerMs) + " ms");
    }
    return;
  }
  const auto overdue = [&](uint64_t since_ns) {
    return since_ns != 0 && now_ns > since_ns && now_ns - since_ns > timeout_ns_;
  };
  const std::string seconds =
      " for more than " + std::to_string(timeout_ns_ / kNsPerMs) +
      " ms (operation_timeout_ms): it was stopped, or waits for memory that does not come";
  if (overdue(watched.moved_ns)) {
    Fail(watched, "has stood still" + seconds);
  } else if (overdue(watched.worker->copier->silent_since_ns())) {
    Fail(watched, "has ended none of its copies" + seconds);
  } else if (overdue(watched.unsent_since_ns)) {
    Fail(watched, "has not read its messages" + seconds);
  }
}

void WorkerSupervisor::Fail(Watched& watched, const std::string& text) {
  const Worker& worker = *watched.worker;
  worker.copier->Fail();
  if (watched.is_started()) {
    watched.Kill();
  }
  if (!watched.failed && !watched.ending && events_.on_failed) {
    events_.on_failed(worker.job_id, ErrorCode::kWorkerDied,
                      "the worker process of job " + worker.job_id + " (pid " +
                          std::to_string(watched.process.pid) + ", uid " +
                          std::to_string(worker.user.uid) + ") " + text);
  }
  watched.failed = true;
}

WorkerSupervisor::Watched* WorkerSupervisor::Find(const Worker* worker) {
  const auto found = std::find_if(watched_.begin(), watched_.end(), [worker](const auto& watched) {
    return watched->worker.get() == worker;
  });
  return found == watched_.end() ? nullptr : found->get();
}

}  // namespace ferry::daemon
