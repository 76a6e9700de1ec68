#include "tools/ferryrun/slots.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <utility>
#include <variant>

#include "common/passed_descriptors.h"
#include "tools/ferryrun/process_tree.h"

namespace ferry::tools {
namespace {

// Ranks that write to a full pipe block.
constexpr int kNoticePipeBytes = 1 << 20;

}  // namespace

StatusOr<Slots> Slots::Create() {
  Slots slots;
  StatusOr<Pipe> notices = MakePipe();  // before the guard: ranks inherit it from there
  FERRY_RETURN_IF_ERROR(notices.status());
  fcntl(notices->read.get(), F_SETFL, O_NONBLOCK);
  (void)fcntl(notices->read.get(), F_SETPIPE_SZ, kNoticePipeBytes);
  slots.notices_ = std::move(*notices);
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    return StatusFromErrno(errno, "cannot make a socket");
  }
  slots.socket_.Reset(ends[0]);
  UniqueFd guards(ends[1]);
  slots.guard_ = fork();
  if (slots.guard_ == 0) {
    slots.socket_.Reset();  // else it would never hang up
    LiveAsGuard(std::move(guards));
  }
  if (slots.guard_ < 0) {
    return StatusFromErrno(errno, "cannot start a process");
  }
  setpgid(slots.guard_, slots.guard_);  // here too: who kills our group now means not the guard
  prctl(PR_SET_CHILD_SUBREAPER, 1);     // if the guard is killed, what is below it comes to us
  return slots;
}

Slots::Slots(Slots&& other) noexcept
    : socket_(std::move(other.socket_)),
      guard_(std::exchange(other.guard_, -1)),
      lost_(other.lost_),
      notices_(std::move(other.notices_)),
      ends_(std::move(other.ends_)) {}

bool Slots::Send(GuardOrderKind kind, int32_t number, std::string_view text,
                 std::span<const int> streams) {
  const GuardOrder order{kind, number, static_cast<uint32_t>(text.size())};
  if (SendWithDescriptors(socket_.get(), std::as_bytes(std::span(&order, 1)), streams, 0) !=
      sizeof(order)) {
    return false;
  }
  while (!text.empty()) {
    const ssize_t size = send(socket_.get(), text.data(), text.size(), MSG_NOSIGNAL);
    if (size < 0 && errno != EINTR) {
      return false;
    }
    text.remove_prefix(static_cast<size_t>(std::max<ssize_t>(size, 0)));
  }
  return true;
}

std::optional<GuardWord> Slots::Next(bool waits) {
  GuardWord word{};
  ssize_t size = -1;
  do {
    size = recv(socket_.get(), &word, sizeof(word), waits ? MSG_WAITALL : MSG_DONTWAIT);
  } while (size < 0 && errno == EINTR);
  if (size == sizeof(word)) {
    return word;
  }
  // The guard sends words whole, and a socket between two processes keeps them so.
  lost_ |= size >= 0 || errno != EAGAIN;
  return std::nullopt;
}

void Slots::Note(const GuardWord& word) {
  if (word.kind == GuardWordKind::kEnded) {
    ends_[word.pid] = EndFrom(word.first, word.second);
  }
}

std::optional<GuardWord> Slots::Answer() {
  std::optional<GuardWord> word = Next(/*waits=*/true);
  while (word && word->kind == GuardWordKind::kEnded) {
    Note(*word);
    word = Next(/*waits=*/true);
  }
  return word;
}

std::optional<RankNotice> Slots::NextNotice() const {
  RankNotice notice{};
  if (read(notices_.read.get(), &notice, sizeof(notice)) != sizeof(notice)) {
    return std::nullopt;
  }
  notice.entry[sizeof(notice.entry) - 1] = '\0';
  notice.exit[sizeof(notice.exit) - 1] = '\0';
  return notice;
}

StatusOr<pid_t> Slots::Start(const SpawnRequest& request) {
  std::vector<int> streams = {request.stdin_fd, request.stdout_fd, request.stderr_fd};
  if (request.pmi_fd >= 0) {
    streams.push_back(request.pmi_fd);
  }
  std::optional<GuardWord> word;
  if (Send(GuardOrderKind::kStart, 0, SpawnText(request), streams)) {
    word = Answer();
  }
  if (!word) {
    lost_ = true;
    return Status(ErrorCode::kSystem, "the process that starts ranks (ferry-guard, pid " +
                                          std::to_string(guard_) + ") was killed");
  }
  if (word->kind == GuardWordKind::kStarted) {
    return word->pid;
  }
  return Explain(request, {static_cast<SpawnFailure::Step>(word->first), word->second});
}

void Slots::Receive() {
  while (const std::optional<GuardWord> word = Next(/*waits=*/false)) {
    Note(*word);
  }
  if (lost_) {
    socket_.Reset();
  }
}

std::optional<ProcessEnd> Slots::EndOf(pid_t pid) const {
  const auto found = ends_.find(pid);
  return found == ends_.end() ? std::nullopt : std::optional(found->second);
}

void Slots::EndAll(const std::vector<pid_t>& spared) { EndAllBelow({.spared = spared}); }

void Slots::Signal(int signal) { Send(GuardOrderKind::kSignal, signal); }

void Slots::Finish() {
  if (guard_ <= 0) {
    return;
  }
  if (!lost_ && Send(GuardOrderKind::kFinish, 0)) {
    Answer();
  }
  socket_.Reset();  // whatever it was at: it ends now
  waitpid(std::exchange(guard_, -1), nullptr, 0);
}

}  // namespace ferry::tools
