// How other threads reach the progress thread: closures in a queue, and an eventfd that wakes it.
#pragma once

#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <utility>
#include <vector>

#include "common/unique_fd.h"

namespace ferry::daemon {

class Mailbox {
 public:
  Mailbox() : event_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {}

  // Puts a letter into the queue, for the progress thread to carry out. Any thread.
  void Post(std::function<void()> letter) {
    {
      std::lock_guard lock(mutex_);
      letters_.push_back(std::move(letter));
    }
    any_.store(true, std::memory_order_release);  // Pairs with Open.
    Ring();
  }
  // Ends the sleep of the progress thread. Any thread.
  void Ring() const {
    const uint64_t one = 1;
    (void)!write(event_.get(), &one, sizeof(one));
  }

  // Reads and carries out all letters; returns their number. Called by the progress thread.
  uint32_t Open() {
    if (!any_.load(std::memory_order_acquire)) {  // Pairs with Post.
      return 0;
    }
    any_.store(false, std::memory_order_relaxed);
    {
      std::lock_guard lock(mutex_);
      opened_.swap(letters_);
    }
    const auto count = static_cast<uint32_t>(opened_.size());
    for (const auto& letter : opened_) {
      letter();
    }
    opened_.clear();
    return count;
  }
  // Resets the eventfd. Called by the progress thread after it has slept.
  void Silence() const {
    uint64_t count = 0;
    (void)!read(event_.get(), &count, sizeof(count));
  }
  int fd() const { return event_.get(); }

 private:
  UniqueFd event_;
  std::atomic<bool> any_{false};
  std::mutex mutex_;
  std::vector<std::function<void()>> letters_;
  std::vector<std::function<void()>> opened_;
};

}  // namespace ferry::daemon
