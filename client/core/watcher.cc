#include "client/core/watcher.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "common/thread.h"

namespace ferry::client {

Watcher::Watcher(AttachConnection* attach, int daemon_pidfd, shm::Wake wake,
                 std::function<void(ErrorCode)> on_end)
    : attach_(attach),
      daemon_pidfd_(daemon_pidfd),
      wake_(wake),
      on_end_(std::move(on_end)),
      stop_(eventfd(0, EFD_CLOEXEC)) {}

Status Watcher::Start() {
  StatusOr<std::thread> thread =
      StartThread("ferry-watcher", "that watches the daemon", [this] { Run(); });
  FERRY_RETURN_IF_ERROR(thread.status());
  thread_ = std::move(*thread);
  return {};
}

Watcher::~Watcher() {
  if (thread_.joinable()) {
    eventfd_write(stop_.get(), 1);
    thread_.join();
  }
}

Status Watcher::reason() const {
  std::lock_guard lock(mutex_);
  return reason_;
}

Status Watcher::AwaitReason(std::chrono::milliseconds patience) const {
  std::unique_lock lock(mutex_);
  told_.wait_for(lock, patience, [this] { return !reason_.ok(); });
  return reason_;
}

void Watcher::Run() {
  pollfd watched[] = {
      {stop_.get(), POLLIN, 0}, {attach_->fd(), POLLRDHUP, 0}, {daemon_pidfd_, POLLIN, 0}};
  while (poll(watched, 3, -1) < 0 && errno == EINTR) {
  }
  if (watched[0].revents != 0) {
    return;
  }
  const Status reason = attach_->Goodbye();
  {
    std::lock_guard lock(mutex_);
    reason_ = reason;
  }
  told_.notify_all();
  wake_.Poison(reason.code());
  on_end_(reason.code());
}

}  // namespace ferry::client
