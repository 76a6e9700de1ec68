#include "tools/ferryrun/guard.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>
#include <utility>

#include "common/passed_descriptors.h"
#include "tools/ferryrun/process_tree.h"

namespace ferry::tools {
namespace {

constexpr size_t kStreams = 3;
constexpr uint64_t kFinishLimitMs = 5000;  // for what hangs in the kernel

// ---- SpawnText: each text with a NUL behind it, after the count of arguments ----

void Append(std::string_view text, std::string* to) {
  to->append(text);
  to->push_back('\0');
}

// Nothing more: false.
bool Take(std::string_view* from, std::string* text) {
  const size_t end = from->find('\0');
  if (end == from->npos) {
    return false;
  }
  *text = from->substr(0, end);
  from->remove_prefix(end + 1);
  return true;
}

// ---- The guard ----

// Another name than ferryrun's: `killall ferryrun` and `pkill -f` are to leave it to its work. The
// arguments of a process lie one after the other, as the kernel shows them.
void TakeOwnName() {
  constexpr char kName[] = "ferry-guard";
  prctl(PR_SET_NAME, kName);
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  const auto size = static_cast<size_t>(
      std::distance(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()));
  if (size >= sizeof(kName)) {
    std::memset(program_invocation_name, 0, size);
    std::memcpy(program_invocation_name, kName, sizeof(kName));
  }
}

class Guard {
 public:
  explicit Guard(UniqueFd socket) : socket_(std::move(socket)) {}

  // Until ferryrun has finished, or is gone.
  void Run() {
    sigset_t child_ends;
    sigemptyset(&child_ends);
    sigaddset(&child_ends, SIGCHLD);
    const UniqueFd ends(signalfd(-1, &child_ends, SFD_CLOEXEC | SFD_NONBLOCK));
    while (!over_) {
      pollfd fds[] = {{socket_.get(), POLLIN, 0}, {ends.get(), POLLIN, 0}};
      if (poll(fds, 2, -1) <= 0) {
        continue;
      }
      if (fds[1].revents != 0) {
        signalfd_siginfo ignored[8];
        (void)read(ends.get(), ignored, sizeof(ignored));
        ReapEnded();
      }
      if (fds[0].revents != 0) {
        Obey();
      }
    }
  }

 private:
  void Obey() {
    GuardOrder order{};
    std::vector<UniqueFd> streams;
    const ssize_t size = ReceiveWithDescriptors(
        socket_.get(), std::as_writable_bytes(std::span(&order, 1)), &streams, MSG_WAITALL);
    if (size < 0 && errno == EINTR) {
      return;
    }
    std::string text(size == sizeof(order) ? order.bytes : 0, '\0');
    if (size != sizeof(order) || !ReadWhole(&text)) {
      return EndAll();
    }
    switch (order.kind) {
      case GuardOrderKind::kStart:
        return Start(text, streams);
      case GuardOrderKind::kSignal:
        return Signal(order.number);
      case GuardOrderKind::kFinish:
        return Finish();
    }
    EndAll();
  }

  bool ReadWhole(std::string* text) const {
    size_t done = 0;
    while (done < text->size()) {
      const ssize_t size = read(socket_.get(), text->data() + done, text->size() - done);
      if (size <= 0 && !(size < 0 && errno == EINTR)) {
        return false;
      }
      done += static_cast<size_t>(std::max<ssize_t>(size, 0));
    }
    return true;
  }

  // Sends a word. If no process listens any more, the next look at the socket says so.
  void Say(const GuardWord& word) const {
    (void)send(socket_.get(), &word, sizeof(word), MSG_NOSIGNAL);
  }

  void Start(std::string_view text, const std::vector<UniqueFd>& streams) {
    SpawnRequest request{};
    request.parent_death_signal = SIGKILL;
    if (!ReadSpawn(text, &request) || streams.size() < kStreams) {
      return Say({GuardWordKind::kFailed, -1, static_cast<int32_t>(SpawnFailure::Step::kFork),
                  streams.size() < kStreams ? EMFILE : EPROTO});
    }
    request.stdin_fd = streams[0].get();
    request.stdout_fd = streams[1].get();
    request.stderr_fd = streams[2].get();
    if (streams.size() > kStreams) {
      request.pmi_fd = streams[kStreams].get();
      request.environment.push_back("PMI_FD=" + std::to_string(request.pmi_fd));
    }
    const std::variant<pid_t, SpawnFailure> child = TrySpawn(request);
    if (const auto* failure = std::get_if<SpawnFailure>(&child)) {
      return Say(
          {GuardWordKind::kFailed, -1, static_cast<int32_t>(failure->step), failure->error_number});
    }
    ranks_.push_back(std::get<pid_t>(child));
    Say({GuardWordKind::kStarted, ranks_.back(), 0, 0});
  }

  void Signal(int signal) const {
    for (const pid_t rank : ranks_) {
      kill(-rank, signal);
    }
  }

  // Ranks' ends are told; orphans that became our children end without a word.
  void ReapEnded() {
    siginfo_t info{};
    while (waitid(P_ALL, 0, &info, WEXITED | WNOHANG) == 0 && info.si_pid != 0) {
      if (std::erase(ranks_, info.si_pid) != 0) {
        Say({GuardWordKind::kEnded, info.si_pid, info.si_code, info.si_status});
      }
      info = {};
    }
  }

  bool HasChildren() const {
    siginfo_t info{};
    return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0;
  }

  // Processes with a session of their own have left the job, such as a server that a rank started
  // for good.
  void Finish() {
    Signal(SIGKILL);
    if (HasChildren()) {
      EndAllBelow({.limit_ms = kFinishLimitMs, .reap = [this] { ReapEnded(); }});
    }
    Say({GuardWordKind::kFinished, 0, 0, 0});
    over_ = true;
  }

  // Ends all processes below. ferryrun was killed, so no order tells which may stay.
  void EndAll() {
    Signal(SIGKILL);
    EndAllBelow({.other_sessions = true, .reap = [this] { ReapEnded(); }});
    over_ = true;
  }

  const UniqueFd socket_;
  std::vector<pid_t> ranks_;  // that have not ended
  bool over_ = false;
};

}  // namespace

std::string SpawnText(const SpawnRequest& request) {
  std::string text;
  Append(std::to_string(request.inherited_fd), &text);
  Append(std::to_string(request.arguments.size()), &text);
  Append(request.path, &text);
  Append(request.directory, &text);
  Append(request.cpus.Text(), &text);
  Append(request.is_held ? "held" : "", &text);
  for (const std::string& argument : request.arguments) {
    Append(argument, &text);
  }
  for (const std::string& entry : request.environment) {
    Append(entry, &text);
  }
  return text;
}

bool ReadSpawn(std::string_view text, SpawnRequest* request) {
  std::string inherited;
  std::string count;
  std::string cpus;
  std::string held;
  if (!Take(&text, &inherited) || !Take(&text, &count) || !Take(&text, &request->path) ||
      !Take(&text, &request->directory) || !Take(&text, &cpus) || !Take(&text, &held)) {
    return false;
  }
  request->inherited_fd = std::atoi(inherited.c_str());
  request->is_held = !held.empty();
  if (!cpus.empty()) {
    StatusOr<topology::CpuSet> set = topology::CpuSet::Parse(cpus);
    if (!set.ok()) {
      return false;
    }
    request->cpus = std::move(*set);
  }
  request->arguments.resize(static_cast<size_t>(std::atoi(count.c_str())));
  for (std::string& argument : request->arguments) {
    if (!Take(&text, &argument)) {
      return false;
    }
  }
  for (std::string entry; Take(&text, &entry);) {
    request->environment.push_back(std::move(entry));
  }
  return text.empty();
}

void LiveAsGuard(UniqueFd socket) {
  setpgid(0, 0);
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  TakeOwnName();
  // ferryrun's streams are to end with it.
  if (const UniqueFd null(open("/dev/null", O_RDWR | O_CLOEXEC)); null.valid()) {
    for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
      dup2(null.get(), fd);
    }
  }
  // Signals that ask ferryrun to end are ferryrun's matter.
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_BLOCK, &all, nullptr);
  Guard(std::move(socket)).Run();
  _exit(0);
}

}  // namespace ferry::tools
