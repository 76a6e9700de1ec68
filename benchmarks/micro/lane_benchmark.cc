// Lanes beside Boost's single-producer single-consumer queue of the same slots.
#include <benchmark/benchmark.h>

#include <atomic>
#include <boost/lockfree/spsc_queue.hpp>
#include <thread>

#include "benchmarks/micro/segment_memory.h"
#include "shm/lane.h"
#include "shm/wait_policy.h"

namespace ferry::shm {
namespace {

// The two have one shape here: TryPush, TryPop.
class LaneQueue {
 public:
  LaneQueue() { producer_.Open(0); }
  bool TryPush(const Descriptor& descriptor) { return producer_.TryPush(descriptor); }
  bool TryPop(Descriptor* descriptor) {
    const Descriptor* front = consumer_.Peek();
    if (front == nullptr) {
      return false;
    }
    *descriptor = *front;
    consumer_.Pop();
    return true;
  }

 private:
  SegmentMemory memory_{sizeof(LaneLayout)};
  LaneProducer producer_{memory_.At<LaneLayout>(0)};
  LaneConsumer consumer_{memory_.At<LaneLayout>(0)};
};

class BoostQueue {
 public:
  bool TryPush(const Descriptor& descriptor) { return queue_.push(descriptor); }
  bool TryPop(Descriptor* descriptor) { return queue_.pop(*descriptor); }

 private:
  boost::lockfree::spsc_queue<Descriptor, boost::lockfree::capacity<kLaneSlots>> queue_;
};

// Polls as a rank does, so that the other thread gets a turn where cores are few.
template <typename Try>
void Until(Try&& done) {
  Waiter waiter{WaitPolicy{}};
  while (!done()) {
    waiter.Idle();
  }
}

template <typename Queue>
void PushPop(benchmark::State& state) {
  Queue queue;
  Descriptor descriptor{};
  for ([[maybe_unused]] auto _ : state) {
    queue.TryPush(descriptor);
    benchmark::DoNotOptimize(queue.TryPop(&descriptor));
  }
}
BENCHMARK(PushPop<LaneQueue>);
BENCHMARK(PushPop<BoostQueue>);

template <typename Queue>
void RoundTrip(benchmark::State& state) {
  Queue there;
  Queue back;
  std::atomic<bool> stop = false;
  std::thread echo([&] {
    Descriptor descriptor;
    while (true) {
      bool got = false;
      Until([&] { return (got = there.TryPop(&descriptor)) || stop.load(); });
      if (!got) {
        return;
      }
      Until([&] { return back.TryPush(descriptor); });
    }
  });
  Descriptor descriptor{};
  for ([[maybe_unused]] auto _ : state) {
    Until([&] { return there.TryPush(descriptor); });
    Until([&] { return back.TryPop(&descriptor); });
  }
  stop = true;
  echo.join();
}
BENCHMARK(RoundTrip<LaneQueue>)->UseRealTime();
BENCHMARK(RoundTrip<BoostQueue>)->UseRealTime();

template <typename Queue>
void Stream(benchmark::State& state) {
  Queue queue;
  std::atomic<bool> stop = false;
  std::thread consumer([&] {
    Descriptor descriptor;
    while (true) {
      bool got = false;
      Until([&] { return (got = queue.TryPop(&descriptor)) || stop.load(); });
      if (!got) {
        return;
      }
    }
  });
  const Descriptor descriptor{};
  for ([[maybe_unused]] auto _ : state) {
    Until([&] { return queue.TryPush(descriptor); });
  }
  state.SetItemsProcessed(state.iterations());
  stop = true;
  consumer.join();
}
BENCHMARK(Stream<LaneQueue>)->UseRealTime();
BENCHMARK(Stream<BoostQueue>)->UseRealTime();

}  // namespace
}  // namespace ferry::shm
