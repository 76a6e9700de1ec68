// Descriptors that are watched together (epoll(7)), so that a loop of poll has one in their place.
//
// Main thread; nothing blocks.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>

#include "common/unique_fd.h"

namespace ferry::tools {

class EventSet {
 public:
  EventSet();

  // Readable when one of the descriptors is ready.
  int fd() const { return epoll_.get(); }
  // Watches for `events` (EPOLLIN, EPOLLOUT). Dispatch calls `on_events` with those that are there,
  // which may add and remove descriptors. EPOLLHUP is always told, so remove what has hung up.
  void Add(int fd, uint32_t events, std::function<void(uint32_t events)> on_events);
  void Change(int fd, uint32_t events);
  void Remove(int fd);  // before it is closed
  // Deals with what is ready now.
  void Dispatch();

 private:
  UniqueFd epoll_;
  std::map<int, std::shared_ptr<std::function<void(uint32_t)>>> calls_;
};

}  // namespace ferry::tools
