// Requests of threads that play a GPU to ferryd, through a rank's ring of a device: a round trip,
// and how many a second. Beside them what threads of one process can do for each other: a flag
// there and back, a queue under a mutex, Boost.Lockfree's queue.
//
//   device_ring round_trip | rate PRODUCERS [BATCH] | groups GROUPS SIZE    (a rank, under
//   ferryrun)
//
// BATCH: so many requests at once, by one ticket, or under one lock. groups: work-groups whose
// threads post a request each, by one ticket (Ferry) or by their own (thread).
//
// Prints "NAME FIGURE" for each: microseconds there and back, or millions of requests a second.
#include "ferry/device_ring.hpp"

#include <algorithm>
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
#include "ferry/device/emulated.h"
#include "ferry/device/ring.h"
#include "ferry/device/ring_batch.h"

namespace {

using Clock = std::chrono::steady_clock;

constexpr uint32_t kSlots = 1024;
constexpr uint64_t kRequests = 4'000'000;
constexpr uint64_t kGroupRequests = 200'000;  // the threads of a group wait for one another
constexpr uint64_t kRoundTrips = 50'000;
constexpr uint32_t kMostBatch = 64;

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

// Measures a round trip over two flags, waiting as device code does.
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

using Request = ferry_device_ring_request;

Request Nop(const ferry_device_ring& ring, uint64_t value, uint32_t completion) {
  return ferry_device_ring_request_for(ring, FERRY_DEVICE_RING_NOP, {0, 0, 0}, value, completion);
}

// A thread's last request is answered, after all before it.
void AwaitAnswer(const ferry_device_ring& ring, uint32_t thread) {
  if (ferry_device_ring_wait(ring, thread, ferry_device_ring_nop(ring, 0, thread)) != 0) {
    Die("a wrong answer");
  }
}

double RingRate(const ferry::DeviceRing& made, uint32_t producers, uint32_t batch) {
  const uint64_t each = kRequests / producers;
  return Rate(
      producers,
      [&](uint32_t thread) {
        const ferry_device_ring ring = ferry_device_ring_open(made.address());
        std::array<Request, kMostBatch> requests{};
        for (uint64_t i = 0; i < each; i += batch) {
          if (batch == 1) {
            ferry_device_ring_nop(ring, i, FERRY_DEVICE_RING_SILENT);
            continue;
          }
          for (uint32_t one = 0; one < batch; ++one) {
            requests[one] = Nop(ring, i + one, FERRY_DEVICE_RING_SILENT);
          }
          ferry_device_ring_post_many(ring, requests.data(), batch);
        }
        AwaitAnswer(ring, thread);
      },
      [] {});
}

// Work-groups on an emulated device; between two requests of a thread its group meets twice.
double GroupRate(const ferry::DeviceRing& made, uint32_t groups, uint32_t size, bool is_together) {
  const uint64_t each = kGroupRequests / groups / size;
  std::vector<ferry_device_u64> words(groups * size_t{16});  // far from one another
  const Clock::time_point start = Clock::now();
  ferry::device::Launch({groups, size}, [&] {
    const ferry_device_ring ring = ferry_device_ring_open(made.address());
    for (uint64_t i = 0; i < each; ++i) {
      if (is_together) {
        ferry_device_ring_post_work_group(ring, Nop(ring, i, FERRY_DEVICE_RING_SILENT), size,
                                          &words[ferry_device_group() * size_t{16}]);
      } else {
        ferry_device_group_barrier();
        ferry_device_ring_nop(ring, i, FERRY_DEVICE_RING_SILENT);
        ferry_device_group_barrier();
      }
    }
    AwaitAnswer(ring, static_cast<uint32_t>(ferry_device_thread()));
  });
  return static_cast<double>(each * groups * size) / Seconds(start) / 1e6;
}

class MutexQueue {
 public:
  // All of them or none.
  bool TryPush(const Request* requests, size_t count) {
    std::lock_guard lock(mutex_);
    if (requests_.size() + count > kSlots) {
      return false;
    }
    requests_.insert(requests_.end(), requests, requests + count);
    return true;
  }
  size_t TryPop(Request* requests, size_t most) {
    std::lock_guard lock(mutex_);
    const size_t count = std::min(most, requests_.size());
    std::copy_n(requests_.begin(), count, requests);
    requests_.erase(requests_.begin(), requests_.begin() + static_cast<ptrdiff_t>(count));
    return count;
  }

 private:
  std::mutex mutex_;
  std::deque<Request> requests_;
};

// Knows no batches.
class LockFreeQueue {
 public:
  bool TryPush(const Request* requests, size_t count) {
    for (size_t i = 0; i < count; ++i) {
      while (!queue_.TryPush(requests[i])) {
        ferry_device_pause();
      }
    }
    return true;
  }
  size_t TryPop(Request* requests, size_t /*most*/) { return queue_.TryPop(requests) ? 1 : 0; }

 private:
  ferry::bench::BoostQueue<Request, kSlots> queue_;
};

template <typename Queue>
double QueueRate(uint32_t producers, uint32_t batch) {
  const auto queue = std::make_unique<Queue>();
  const uint64_t each = kRequests / producers;
  return Rate(
      producers,
      [&](uint32_t /*thread*/) {
        const std::array<Request, kMostBatch> requests{};
        for (uint64_t i = 0; i < each; i += batch) {
          while (!queue->TryPush(requests.data(), std::min<uint64_t>(batch, each - i))) {
            ferry_device_pause();
          }
        }
      },
      [&] {
        std::array<Request, kMostBatch> requests{};
        for (uint64_t taken = 0; taken < each * producers;) {
          const size_t came = queue->TryPop(requests.data(), batch);
          taken += came;
          if (came == 0) {
            ferry_device_pause();
          }
        }
      });
}

struct Command {
  std::string_view what;
  std::vector<uint32_t> numbers;
};

// An empty one if the arguments make no sense.
Command Parse(int argc, char** argv) {
  Command command;
  command.what = argc > 1 ? argv[1] : "";
  for (int i = 2; i < argc; ++i) {
    const int number = std::atoi(argv[i]);
    if (number < 1 || number > 1024) {
      return {};
    }
    command.numbers.push_back(static_cast<uint32_t>(number));
  }
  const std::vector<uint32_t>& numbers = command.numbers;
  if (command.what == "rate" && numbers.size() == 1) {
    command.numbers.push_back(1);
  }
  const bool is_known =
      (command.what == "round_trip" && numbers.empty()) ||
      (command.what == "rate" && numbers.size() == 2 && numbers[1] <= kMostBatch) ||
      (command.what == "groups" && numbers.size() == 2 && numbers[0] * numbers[1] <= 1024);
  return is_known ? command : Command{};
}

}  // namespace

int main(int argc, char** argv) {
  const auto [what, numbers] = Parse(argc, argv);
  if (what.empty()) {
    std::fprintf(stderr,
                 "usage: device_ring round_trip | rate PRODUCERS [BATCH, 64 at most] | groups "
                 "GROUPS SIZE\n");
    return 2;
  }
  const ferry::Session session;
  {
    const ferry::DeviceRing ring(0, kSlots, 1024);
    if (what == "rate") {
      std::printf("Ferry %.4f\n", RingRate(ring, numbers[0], numbers[1]));
      std::printf("mutex %.4f\n", QueueRate<MutexQueue>(numbers[0], numbers[1]));
      std::printf("Boost.Lockfree %.4f\n", QueueRate<LockFreeQueue>(numbers[0], numbers[1]));
    } else if (what == "groups") {
      std::printf("Ferry %.4f\n", GroupRate(ring, numbers[0], numbers[1], true));
      std::printf("thread %.4f\n", GroupRate(ring, numbers[0], numbers[1], false));
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
