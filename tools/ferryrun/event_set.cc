#include "tools/ferryrun/event_set.h"

#include <sys/epoll.h>

#include <array>
#include <utility>

namespace ferry::tools {
namespace {

constexpr int kMostAtOnce = 64;

epoll_event EventOf(int fd, uint32_t events) {
  epoll_event event{};
  event.events = events;
  event.data.fd = fd;
  return event;
}

}  // namespace

EventSet::EventSet() : epoll_(epoll_create1(EPOLL_CLOEXEC)) {}

void EventSet::Add(int fd, uint32_t events, std::function<void(uint32_t)> on_events) {
  epoll_event event = EventOf(fd, events);
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) == 0) {
    calls_[fd] = std::make_shared<std::function<void(uint32_t)>>(std::move(on_events));
  }
}

void EventSet::Change(int fd, uint32_t events) {
  epoll_event event = EventOf(fd, events);
  epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, fd, &event);
}

void EventSet::Remove(int fd) {
  if (calls_.erase(fd) != 0) {
    epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
  }
}

void EventSet::Dispatch() {
  std::array<epoll_event, kMostAtOnce> events{};
  const int ready = epoll_wait(epoll_.get(), events.data(), kMostAtOnce, 0);
  for (int i = 0; i < ready; ++i) {
    const auto found = calls_.find(events[static_cast<size_t>(i)].data.fd);
    if (found != calls_.end()) {
      const auto call = found->second;  // which may remove itself
      (*call)(events[static_cast<size_t>(i)].events);
    }
  }
}

}  // namespace ferry::tools
