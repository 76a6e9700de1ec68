#include "client/direct/memory_monitor.h"

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <utility>

#include "common/thread.h"

namespace ferry::client {
namespace {

constexpr uint64_t kEvents =
    UFFD_FEATURE_EVENT_UNMAP | UFFD_FEATURE_EVENT_REMAP | UFFD_FEATURE_EVENT_REMOVE;

Status Unsupported(const char* what, int error) {
  return {ErrorCode::kUnsupported, StatusFromErrno(error, what).message()};
}

}  // namespace

StatusOr<std::unique_ptr<MemoryMonitor>> MemoryMonitor::Create() {
  std::unique_ptr<MemoryMonitor> monitor(new MemoryMonitor);
  // Without the last flag it is for root alone, as a rule.
  monitor->events_.Reset(
      static_cast<int>(syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY)));
  if (!monitor->events_.valid()) {
    return Unsupported("userfaultfd", errno);
  }
  uffdio_api api{};
  api.api = UFFD_API;
  api.features = kEvents;
  if (ioctl(monitor->events_.get(), UFFDIO_API, &api) != 0) {
    return Unsupported("UFFDIO_API", errno);
  }
  monitor->stop_.Reset(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!monitor->stop_.valid()) {
    return Unsupported("eventfd", errno);
  }
  StatusOr<std::thread> thread = StartThread("ferry-memory", "that watches registered memory",
                                             [watched = monitor.get()] { watched->Run(); });
  FERRY_RETURN_IF_ERROR(thread.status());
  monitor->thread_ = std::move(*thread);
  return monitor;
}

MemoryMonitor::~MemoryMonitor() {
  if (thread_.joinable()) {
    (void)eventfd_write(stop_.get(), 1);
    thread_.join();
  }
}

Status MemoryMonitor::Watch(uintptr_t begin, uintptr_t end) {
  const auto page_bytes = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  uffdio_register range{};
  range.range.start = begin & ~(page_bytes - 1);
  range.range.len = ((end + page_bytes - 1) & ~(page_bytes - 1)) - range.range.start;
  range.mode = UFFDIO_REGISTER_MODE_WP;
  return ioctl(events_.get(), UFFDIO_REGISTER, &range) == 0 ? Status()
                                                            : Unsupported("UFFDIO_REGISTER", errno);
}

void MemoryMonitor::TakeGone(std::vector<progress::MemoryRange>* gone) {
  std::array<progress::MemoryRange, std::tuple_size_v<decltype(noted_)>> taken;
  size_t count = 0;
  bool is_full = false;
  {
    const std::lock_guard lock(mutex_);
    count = std::exchange(noted_count_, 0);
    std::copy_n(noted_.begin(), count, taken.begin());
    is_full = std::exchange(is_full_, false);
  }
  gone->insert(gone->end(), taken.begin(), taken.begin() + static_cast<ptrdiff_t>(count));
  if (is_full) {
    gone->push_back({0, UINTPTR_MAX});
  }
}

// Under the lock.
void MemoryMonitor::Note(uint64_t begin, uint64_t end) {
  if (noted_count_ == noted_.size()) {
    is_full_ = true;
  } else {
    noted_[noted_count_++] = {begin, end};
  }
}

void MemoryMonitor::Run() {
  pollfd watched[] = {{events_.get(), POLLIN, 0}, {stop_.get(), POLLIN, 0}};
  while (poll(watched, 2, -1) >= 0 || errno == EINTR) {
    if (watched[1].revents != 0) {
      return;
    }
    const std::lock_guard lock(mutex_);
    uffd_msg event;
    while (read(events_.get(), &event, sizeof(event)) == sizeof(event)) {
      if (event.event == UFFD_EVENT_UNMAP || event.event == UFFD_EVENT_REMOVE) {
        Note(event.arg.remove.start, event.arg.remove.end);
      } else if (event.event == UFFD_EVENT_REMAP) {
        Note(event.arg.remap.from, event.arg.remap.from + event.arg.remap.len);
        Note(event.arg.remap.to, event.arg.remap.to + event.arg.remap.len);
      }
    }
  }
}

}  // namespace ferry::client
