// Requests through Ferry's ring of many producers, beside a bare ring of the same shape and
// Boost.Lockfree's queue: how many a second, and how long one takes there and back.
//
//   ring rate PRODUCERS | ring round_trip
//
// Prints "NAME FIGURE" for each kind: millions of requests a second, or microseconds one way.
#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string_view>
#include <thread>
#include <vector>

#include "benchmarks/micro/segment_memory.h"
#include "benchmarks/ring/boost_queue.h"
#include "shm/mpsc_ring.h"
#include "shm/wait_policy.h"

namespace {

using Clock = std::chrono::steady_clock;

constexpr uint32_t kSlots = 1024;
constexpr uint64_t kRequests = 2'000'000;
constexpr uint64_t kRoundTrips = 200'000;

struct Request {
  std::array<uint8_t, 48> bytes;
};

// Ferry's ring does more than the bare one: it survives killed producers, checks the memory to
// which it attaches, and counts its turns in shared memory.
class FerryRing {
 public:
  bool TryPush(const Request& request) { return ring_.TryPush(&request, sizeof(request)); }
  bool TryPop(Request* request) {
    const uint8_t* front = ring_.Peek();
    if (front == nullptr) {
      return false;
    }
    std::memcpy(request, front, sizeof(*request));
    ring_.Pop();
    return true;
  }

 private:
  static constexpr uint64_t kBytes = ferry::shm::MpscRing::SizeBytes(kSlots);
  ferry::shm::MpscRingLayout* layout() { return memory_.At<ferry::shm::MpscRingLayout>(0); }
  ferry::shm::SegmentMemory memory_{kBytes};
  const bool ready_ = ferry::shm::MpscRing::Initialize(layout(), kSlots).ok();
  ferry::shm::MpscRing ring_ = *ferry::shm::MpscRing::Attach(layout(), kBytes);
};

// Slots of 64 bytes with a turn each, a ticket by compare-and-swap: nothing else.
class BareRing {
 public:
  BareRing() : slots_(kSlots) {
    for (uint64_t i = 0; i < kSlots; ++i) {
      slots_[i].turn.store(i, std::memory_order_relaxed);
    }
  }
  bool TryPush(const Request& request) {
    uint64_t ticket = tail_.load(std::memory_order_relaxed);
    while (true) {
      Slot& slot = slots_[ticket % kSlots];
      const uint64_t turn = slot.turn.load(std::memory_order_acquire);
      if (turn == ticket) {
        if (tail_.compare_exchange_weak(ticket, ticket + 1, std::memory_order_relaxed)) {
          slot.request = request;
          slot.turn.store(ticket + 1, std::memory_order_release);
          return true;
        }
      } else if (turn < ticket) {
        return false;
      } else {
        ticket = tail_.load(std::memory_order_relaxed);
      }
    }
  }
  bool TryPop(Request* request) {
    Slot& slot = slots_[head_ % kSlots];
    if (slot.turn.load(std::memory_order_acquire) != head_ + 1) {
      return false;
    }
    *request = slot.request;
    slot.turn.store(head_ + kSlots, std::memory_order_release);
    ++head_;
    return true;
  }

 private:
  struct alignas(64) Slot {
    std::atomic<uint64_t> turn;
    Request request;
  };
  alignas(128) std::atomic<uint64_t> tail_ = 0;
  alignas(128) uint64_t head_ = 0;
  std::vector<Slot> slots_;
};

using BoostQueue = ferry::bench::BoostQueue<Request, kSlots>;

// Polls as a rank does, so that the other threads get a turn where cores are few.
template <typename Try>
void Until(Try&& done) {
  ferry::shm::Waiter waiter{ferry::shm::WaitPolicy{}};
  while (!done()) {
    waiter.Idle();
  }
}

double Seconds(Clock::time_point since) {
  return std::chrono::duration<double>(Clock::now() - since).count();
}

template <typename Ring>
double Rate(int producers) {
  auto ring = std::make_unique<Ring>();
  std::atomic<bool> go = false;
  std::vector<std::thread> threads;
  threads.reserve(static_cast<size_t>(producers));
  const uint64_t each = kRequests / static_cast<uint64_t>(producers);
  for (int i = 0; i < producers; ++i) {
    threads.emplace_back([&] {
      Until([&] { return go.load(); });
      const Request request{};
      for (uint64_t n = 0; n < each; ++n) {
        Until([&] { return ring->TryPush(request); });
      }
    });
  }
  const Clock::time_point start = Clock::now();
  go = true;
  Request request;
  for (uint64_t n = 0; n < each * static_cast<uint64_t>(producers); ++n) {
    Until([&] { return ring->TryPop(&request); });
  }
  const double seconds = Seconds(start);
  for (std::thread& thread : threads) {
    thread.join();
  }
  return static_cast<double>(each) * producers / seconds / 1e6;
}

template <typename Ring>
double OneWayUs() {
  auto there = std::make_unique<Ring>();
  auto back = std::make_unique<Ring>();
  std::thread echo([&] {
    Request request;
    for (uint64_t n = 0; n < kRoundTrips; ++n) {
      Until([&] { return there->TryPop(&request); });
      Until([&] { return back->TryPush(request); });
    }
  });
  Request request{};
  const Clock::time_point start = Clock::now();
  for (uint64_t n = 0; n < kRoundTrips; ++n) {
    Until([&] { return there->TryPush(request); });
    Until([&] { return back->TryPop(&request); });
  }
  const double seconds = Seconds(start);
  echo.join();
  return seconds / kRoundTrips / 2 * 1e6;
}

template <typename Ring>
void Measure(const char* name, int producers) {
  std::printf("%s %.4f\n", name, producers == 0 ? OneWayUs<Ring>() : Rate<Ring>(producers));
}

}  // namespace

int main(int argc, char** argv) {
  const bool rate = argc == 3 && argv[1] == std::string_view("rate");
  const int producers = rate ? std::atoi(argv[2]) : 0;
  if (rate ? producers < 1 : argc != 2 || argv[1] != std::string_view("round_trip")) {
    std::fprintf(stderr, "usage: ring rate PRODUCERS | ring round_trip\n");
    return 2;
  }
  Measure<FerryRing>("Ferry", producers);
  Measure<BareRing>("bare", producers);
  Measure<BoostQueue>("Boost.Lockfree", producers);
}
