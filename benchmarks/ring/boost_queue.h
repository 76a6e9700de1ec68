// Boost.Lockfree's queue of many producers, as both benchmarks here measure it beside Ferry's
// rings.
#pragma once

#include <boost/lockfree/queue.hpp>
#include <cstddef>

namespace ferry::bench {

// Any thread. Nothing blocks: false where the queue is full, or empty.
template <typename Request, size_t kSlots>
class BoostQueue {
 public:
  bool TryPush(const Request& request) { return queue_.bounded_push(request); }
  bool TryPop(Request* request) { return queue_.pop(*request); }

 private:
  boost::lockfree::queue<Request, boost::lockfree::capacity<kSlots>> queue_;
};

}  // namespace ferry::bench
