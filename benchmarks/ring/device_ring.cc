// Requests of threads that play a GPU to ferryd, through a rank's ring of a device: a round trip,
// and how many a second. Beside them what threads of one process can do for each other: a flag
// there and back, a queue under a mutex, Boost.Lockfree's queue.
//
//   device_ring round_trip | device_ring rate PRODUCERS        (a rank, under ferryrun)
//
// Prints "NAME FIGURE" for each: microseconds there and back, or millions of requests a second.
#include "ferry/device_ring.hpp"

#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <memory>
#include <mutex>
#include <string_view>
#include <thread>
#include <vector>

#include "benchmarks/ring/boost_queue.h"
#include "ferry/device/ring.h"

namespace {

using Clock = std::chrono::steady_clock;

constexpr uint32_t kSlots = 1024;
constexpr uint64_t kRequests = 2'000'000;
constexpr uint64_t kRoundTrips = 50'000;

double Seconds(Clock::time_point since) {
  return std::chrono::duration<double>(Clock::now() - since).count();
}

[[noreturn]] void Die(const char* what) {
  std::fprintf(stderr, "device_ring: %s: %s\n", what, ferry_last_error());
  std::exit(1);
}

// ---- Round trips --------------------------------------------------------------------------------

double RoundTripUs(const ferry::DeviceRing& made) {
  const ferry_device_ring ring = ferry_device_ring_open(made.address());
  const auto turn = [&](uint64_t i) {
    if (ferry_device_ring_wait(ring, 0, ferry_device_ring_nop(ring, i, 0)) != 0 ||
        ferry_device_ring_value(ring, 0) != i) {
      Die("a wrong answer");
    }
  };
  for (uint64_t i = 0; i < kRoundTrips / 10; ++i) {
    turn(i);
  }
  const Clock::time_point start = Clock::now();
  for (uint64_t i = 0; i < kRoundTrips; ++i) {
    turn(i);
  }
  return Seconds(start) / kRoundTrips * 1e6;
}

// The same waiting as device code does.
double FlagRoundTripUs() {
  struct alignas(128) Flag {
    std::atomic<uint64_t> value = 0;
  };
  const auto flags = std::make_unique<std::array<Flag, 2>>();
  const auto await = [&](size_t flag, uint64_t value) {
    while ((*flags)[flag].value.load(std::memory_order_acquire) != value) {
      ferry_device_pause();
    }
  };
  std::thread echo([&] {
    for (uint64_t i = 1; i <= kRoundTrips; ++i) {
      await(0, i);
      (*flags)[1].value.store(i, std::memory_order_release);
    }
  });
  const Clock::time_point start = Clock::now();
  for (uint64_t i = 1; i <= kRoundTrips; ++i) {
    (*flags)[0].value.store(i, std::memory_order_release);
    await(1, i);
  }
  const double seconds = Seconds(start);
  echo.join();
  return seconds / kRoundTrips * 1e6;
}

// ---- Rates --------------------------------------------------------------------------------------

// Runs `produce(thread)` in so many threads, and `consume()` here; returns millions of requests a
// second, of kRequests in all.
template <typename Produce, typename Consume>
double Rate(uint32_t producers, Produce&& produce, Consume&& consume) {
  std::atomic<bool> go = false;
  std::vector<std::thread> threads;
  for (uint32_t i = 0; i < producers; ++i) {
    threads.emplace_back([&, i] {
      while (!go.load()) {
        ferry_device_pause();
      }
      produce(i);
    });
  }
  const Clock::time_point start = Clock::now();
  go = true;
  consume();
  for (std::thread& thread : threads) {
    thread.join();
  }
  const double seconds = Seconds(start);
  return static_cast<double>(kRequests) / seconds / 1e6;
}

// Each thread's last request is answered, after all before it.
double RingRate(const ferry::DeviceRing& made, uint32_t producers) {
  const uint64_t each = kRequests / producers;
  return Rate(
      producers,
      [&](uint32_t thread) {
        const ferry_device_ring ring = ferry_device_ring_open(made.address());
        for (uint64_t i = 1; i < each; ++i) {
          ferry_device_ring_nop(ring, i, FERRY_DEVICE_RING_SILENT);
        }
        if (ferry_device_ring_wait(ring, thread, ferry_device_ring_nop(ring, 0, thread)) != 0) {
          Die("a wrong answer");
        }
      },
      [] {});
}

using Request = ferry_device_ring_request;

class MutexQueue {
 public:
  bool TryPush(const Request& request) {
    std::lock_guard lock(mutex_);
    if (requests_.size() == kSlots) {
      return false;
    }
    requests_.push_back(request);
    return true;
  }
  bool TryPop(Request* request) {
    std::lock_guard lock(mutex_);
    if (requests_.empty()) {
      return false;
    }
    *request = requests_.front();
    requests_.pop_front();
    return true;
  }

 private:
  std::mutex mutex_;
  std::deque<Request> requests_;
};

using BoostQueue = ferry::bench::BoostQueue<Request, kSlots>;

template <typename Queue>
double QueueRate(uint32_t producers) {
  const auto queue = std::make_unique<Queue>();
  const uint64_t each = kRequests / producers;
  return Rate(
      producers,
      [&](uint32_t /*thread*/) {
        for (uint64_t i = 0; i < each; ++i) {
          while (!queue->TryPush(Request{})) {
            ferry_device_pause();
          }
        }
      },
      [&] {
        Request request{};
        for (uint64_t taken = 0; taken < each * producers; ++taken) {
          while (!queue->TryPop(&request)) {
            ferry_device_pause();
          }
        }
      });
}

}  // namespace

int main(int argc, char** argv) {
  const bool is_rate = argc == 3 && argv[1] == std::string_view("rate");
  const int producers = is_rate ? std::atoi(argv[2]) : 0;
  if (is_rate ? producers < 1 || producers > 1024
              : argc != 2 || argv[1] != std::string_view("round_trip")) {
    std::fprintf(stderr, "usage: device_ring round_trip | rate PRODUCERS\n");
    return 2;
  }
  const ferry::Session session;
  {
    const ferry::DeviceRing ring(0, kSlots, 1024);
    if (is_rate) {
      const auto count = static_cast<uint32_t>(producers);
      std::printf("Ferry %.4f\n", RingRate(ring, count));
      std::printf("mutex %.4f\n", QueueRate<MutexQueue>(count));
      std::printf("Boost.Lockfree %.4f\n", QueueRate<BoostQueue>(count));
    } else {
      std::printf("Ferry %.4f\n", RoundTripUs(ring));
      std::printf("flag %.4f\n", FlagRoundTripUs());
    }
    if (ring.state().errors != 0) {
      Die("requests were refused");
    }
  }
  return 0;
}
