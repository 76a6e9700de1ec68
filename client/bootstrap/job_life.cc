#include "client/bootstrap/job_life.h"

#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <utility>

namespace ferry::client {

JobLife& JobLife::Instance() {
  static JobLife& life = *new JobLife();  // not destroyed at exit, when ranks may still leave
  return life;
}

void JobLife::SetCalls(const char* entry, const char* exit) {
  entry_ = entry;
  exit_ = exit;
}

void JobLife::SetPipe(uint64_t pipe_fd, uint32_t rank) {
  pipe_fd_ = static_cast<int>(pipe_fd);
  rank_ = rank;
  owner_ = getpid();
}

void JobLife::Enter() {
  if (!std::exchange(is_inside_, true)) {
    Tell({.kind = RankNotice::Kind::kEnters});
  }
}

void JobLife::Leave() {
  if (std::exchange(is_inside_, false)) {
    Tell({.kind = RankNotice::Kind::kLeaves});
  }
}

void JobLife::EndJob(int exit_code, bool is_exit) const {
  Tell({.kind = is_exit ? RankNotice::Kind::kExits : RankNotice::Kind::kAborts,
        .exit_code = exit_code});
}

void JobLife::HearOfEnd(ErrorCode error) {
  const bool is_an_end = error == ErrorCode::kPeerDied || error == ErrorCode::kNodeUnreachable ||
                         error == ErrorCode::kDaemonDied || error == ErrorCode::kAborted;
  if (is_an_end && !has_heard_.exchange(true, std::memory_order_relaxed)) {
    Tell({.kind = RankNotice::Kind::kHeardOfEnd, .cause = static_cast<int32_t>(error)});
  }
}

void JobLife::Tell(RankNotice notice) const {
  struct stat file {};
  if (pipe_fd_ <= STDERR_FILENO || owner_ != getpid() || fstat(pipe_fd_, &file) != 0 ||
      !S_ISFIFO(file.st_mode)) {
    return;
  }
  pollfd reader{pipe_fd_, POLLOUT, 0};
  if (poll(&reader, 1, 0) < 0 || (reader.revents & POLLERR) != 0) {
    return;  // it is gone, and a write would be SIGPIPE
  }
  notice.rank = rank_;
  notice.process = static_cast<uint32_t>(owner_);
  std::strncpy(notice.entry, entry_, sizeof(notice.entry) - 1);
  std::strncpy(notice.exit, exit_, sizeof(notice.exit) - 1);
  [[maybe_unused]] const ssize_t size = write(pipe_fd_, &notice, sizeof(notice));
}

}  // namespace ferry::client
