#include "client/bootstrap/watcher.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <utility>

#include "common/thread.h"

namespace ferry::client {

Watcher::Watcher(AttachConnection* attach, int daemon_pidfd, shm::Wake wake,
                 std::function<void(ErrorCode)> on_end, std::function<void()> on_hang,
                 WatcherDuties duties)
    : attach_(attach),
      daemon_pidfd_(daemon_pidfd),
      wake_(wake),
      on_end_(std::move(on_end)),
      on_hang_(std::move(on_hang)),
      duties_(std::move(duties)),
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

// Nothing: it is to stop. Else why the daemon serves the rank no more.
std::optional<Status> Watcher::AwaitEnd() {
  const bool looks = duties_.look != nullptr;
  const short packets = looks ? POLLIN : 0;
  pollfd watched[] = {{stop_.get(), POLLIN, 0},
                      {attach_->fd(), static_cast<short>(POLLRDHUP | packets), 0},
                      {daemon_pidfd_, POLLIN, 0},
                      {looks ? attach_->orders_fd() : -1, POLLIN, 0},
                      {duties_.call_fd, POLLIN, 0}};
  while (true) {
    int timeout_ms = looks ? duties_.look() : -1;
    if (duties_.life != nullptr) {
      if (Status hang = duties_.life->Look(); !hang.ok()) {
        on_hang_();
        return hang;
      }
      const int pause_ms = duties_.life->pause_ms();
      timeout_ms = timeout_ms < 0 ? pause_ms : std::min(timeout_ms, pause_ms);
    }
    while (poll(watched, std::size(watched), timeout_ms) < 0 && errno == EINTR) {
    }
    if (watched[0].revents != 0) {
      return std::nullopt;
    }
    if ((watched[1].revents & ~POLLIN) != 0 || watched[2].revents != 0) {
      return attach_->Goodbye();
    }
    eventfd_t ignored = 0;
    for (const pollfd& event : {watched[3], watched[4]}) {
      if (event.revents != 0) {
        (void)eventfd_read(event.fd, &ignored);
      }
    }
  }
}

void Watcher::Run() {
  const std::optional<Status> reason = AwaitEnd();
  if (!reason.has_value()) {
    return;
  }
  {
    std::lock_guard lock(mutex_);
    reason_ = *reason;
  }
  told_.notify_all();
  wake_.Poison(reason->code());
  on_end_(reason->code());
}

}  // namespace ferry::client
