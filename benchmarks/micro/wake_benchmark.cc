// Publishing to a rank that is awake, and to one that sleeps, beside an eventfd.
#include <benchmark/benchmark.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "benchmarks/micro/segment_memory.h"
#include "common/unique_fd.h"
#include "shm/wake.h"

namespace ferry::shm {
namespace {

// Both have one shape here: Signal, and Wait for the next signal since the last Wait.
class WakeWord {
 public:
  void Signal() {
    signals_.fetch_add(1);
    wake_.Publish();
  }
  void Wait() {
    while (signals_.load() == seen_) {
      const uint32_t sequence = wake_.PrepareToSleep();
      if (signals_.load() != seen_) {
        wake_.CancelSleep();
        break;
      }
      wake_.Sleep(sequence, 0);
    }
    ++seen_;
  }

 private:
  SegmentMemory memory_{sizeof(WakeLayout)};
  Wake wake_{memory_.At<WakeLayout>(0)};
  std::atomic<uint64_t> signals_ = 0;
  uint64_t seen_ = 0;
};

class EventFd {
 public:
  void Signal() { eventfd_write(fd_.get(), 1); }
  void Wait() {
    eventfd_t count = 0;
    eventfd_read(fd_.get(), &count);
  }

 private:
  UniqueFd fd_{eventfd(0, EFD_SEMAPHORE | EFD_CLOEXEC)};
};

// No thread sleeps: measures the cost that each message pays.
template <typename Bell>
void SignalAwake(benchmark::State& state) {
  Bell bell;
  for ([[maybe_unused]] auto _ : state) {
    bell.Signal();
  }
}
BENCHMARK(SignalAwake<WakeWord>);
BENCHMARK(SignalAwake<EventFd>);

void PublishLane(benchmark::State& state) {
  SegmentMemory memory(sizeof(WakeLayout));
  Wake wake(memory.At<WakeLayout>(0));
  for ([[maybe_unused]] auto _ : state) {
    wake.PublishLane(3);
    benchmark::DoNotOptimize(wake.TakeActivity(0));
  }
}
BENCHMARK(PublishLane);

// Two threads that sleep and wake each other: a round trip is two wake-ups.
template <typename Bell>
void WakeUpRoundTrip(benchmark::State& state) {
  Bell there;
  Bell back;
  std::atomic<bool> stop = false;
  std::thread echo([&] {
    while (true) {
      there.Wait();
      if (stop.load()) {
        return;
      }
      back.Signal();
    }
  });
  for ([[maybe_unused]] auto _ : state) {
    there.Signal();
    back.Wait();
  }
  stop = true;
  there.Signal();
  echo.join();
}
BENCHMARK(WakeUpRoundTrip<WakeWord>)->UseRealTime();
BENCHMARK(WakeUpRoundTrip<EventFd>)->UseRealTime();

}  // namespace
}  // namespace ferry::shm
