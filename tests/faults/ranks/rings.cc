// Threads that play a GPU ask ferryd through a ring.
//
//   rings loop TIMES    four threads make so many round trips each, 0: until one fails
//   rings wait          the same for ever, and a fifth waits for a counter that never grows
//   rings quiet         likewise, but the fifth puts for ever, without answers, and awaits the end
//   rings stall         the same for ever, beside a ring with a ticket that is never published
//   rings again         makes and destroys a ring until one of both times out, and then works again
//
// Prints "under way" after the first round trip of each thread. An error of the ring ends the rank
// once all threads have it, as StopOnError does.
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <thread>
#include <vector>

#include "ferry/device/ring.h"
#include "ferry/device/ring_operations.h"
#include "ferry/device_ring.hpp"
#include "ferry/one_sided.h"
#include "tests/faults/ranks/say.h"

namespace {

constexpr uint32_t kThreads = 4;

// False if it timed out.
bool MakeAndDestroy() {
  ferry_ring ring = FERRY_RING_NULL;
  if (const int error = ferry_ring_create(0, 64, 1, &ring); error != FERRY_SUCCESS) {
    ferry::ranks::StopOnError(error == FERRY_ERR_TIMEOUT ? FERRY_SUCCESS : error);
    return false;
  }
  bool was_prompt = true;
  int error = FERRY_SUCCESS;
  while ((error = ferry_ring_destroy(&ring)) == FERRY_ERR_TIMEOUT) {
    if (was_prompt) {
      ferry::ranks::Say("timed out");
    }
    was_prompt = false;
  }
  ferry::ranks::StopOnError(error);
  return was_prompt;
}

int Again() {
  const ferry::Session session;
  if (MakeAndDestroy()) {
    ferry::ranks::Say("under way");
  }
  while (MakeAndDestroy()) {
  }
  ferry::ranks::Say("timed out");
  while (!MakeAndDestroy()) {
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    return 2;
  }
  const std::string_view mode = argv[1];
  const uint64_t times = mode == "loop" && argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 0;
  if (mode == "again") {
    return Again();
  }
  const ferry::Session session;
  const ferry::DeviceRing made(0, 64, kThreads + 1);
  const ferry::DeviceRing stalled(0, 64, 1);
  if (mode == "stall") {
    const ferry_device_ring ring = ferry_device_ring_open(stalled.address());
    (void)ferry_device_fetch_add(ring.producers, 1);
    (void)ferry_device_ring_nop(ring, 1, 0);
  }
  void* memory = nullptr;
  ferry::ranks::StopOnError(ferry_alloc(sizeof(ferry_ring_counter), FERRY_MEMORY_HOST, 0, &memory));
  const ferry_device_place counter = made.Place(memory, sizeof(ferry_ring_counter));
  std::atomic<uint32_t> begun = 0;
  std::atomic<int> failure = FERRY_SUCCESS;
  std::vector<std::thread> threads;
  for (uint32_t mine = 0; mine < kThreads; ++mine) {
    threads.emplace_back([&, mine] {
      const ferry_device_ring ring = ferry_device_ring_open(made.address());
      for (uint64_t i = 0; times == 0 || i < times; ++i) {
        const int status = ferry_device_ring_wait(ring, mine, ferry_device_ring_nop(ring, i, mine));
        if (status != FERRY_SUCCESS) {
          failure = status;
          return;
        }
        if (i == 0 && ++begun == kThreads) {
          ferry::ranks::Say("under way");
        }
      }
    });
  }
  if (mode == "quiet") {
    const ferry_device_ring ring = ferry_device_ring_open(made.address());
    ferry_place own{};
    ferry::ranks::StopOnError(ferry_locate(memory, sizeof(ferry_ring_counter), &own));
    const ferry_device_far_place word = {static_cast<ferry_device_u32>(own.rank), own.segment,
                                         own.offset};
    int status = FERRY_SUCCESS;
    while (status == FERRY_SUCCESS) {
      ferry_device_ring_put_value(ring, word, 1, 0, 8, 0, FERRY_DEVICE_RING_SILENT);
      status = ferry_device_ring_quiet(ring);
    }
    failure = status;
  }
  if (mode == "wait") {
    const ferry_device_ring ring = ferry_device_ring_open(made.address());
    const ferry_device_u64 number = ferry_device_ring_await(ring, counter, 1, kThreads);
    failure = ferry_device_ring_wait(ring, kThreads, number);
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  ferry::ranks::StopOnError(failure);
  ferry::ranks::StopOnError(ferry_free(memory));
  return 0;
}
