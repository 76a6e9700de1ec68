// Matched requests as a rank has them, without the rank: doorbells, done words and messages.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "daemon/triggered/starts.h"
#include "shm/atomic.h"
#include "shm/layout/channel_layout.h"
#include "shm/layout/counter_layout.h"

namespace ferry::daemon {

// A rank's heap, as far as matched requests use it.
struct Heap {
  std::array<shm::ChannelLayout, 16> ends{};
  shm::CounterLayout doorbell{};
};

// A rank's side of one request.
struct Request {
  Request(const std::shared_ptr<Heap>& its_heap, size_t index, size_t bytes)
      : heap(its_heap), end(its_heap->ends[index]), data(bytes) {}

  void Announce(uint64_t round) { shm::StoreRelease(end.armed, round); }
  void Start(uint64_t round) {
    Announce(round);
    shm::StoreRelease(end.start.value, round);
  }
  // Makes the heap's doorbell start it.
  void Share() {
    end.shares = 1;
    end.shared_start = offsetof(Heap, doorbell);
    end.shared_until = UINT64_MAX;
  }
  uint64_t Done() { return shm::LoadAcquire(end.done.value); }

  const std::shared_ptr<Heap> heap;
  shm::ChannelLayout& end;
  Starts starts{&end, {reinterpret_cast<const std::byte*>(heap.get()), sizeof(Heap)}};
  std::vector<std::byte> data;
};

}  // namespace ferry::daemon
