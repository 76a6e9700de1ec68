// The 64-bit words that streams write and wait for. They may lie in memory that other processes
// map, so they are plain words here and atomic only while touched.
#pragma once

#include <atomic>
#include <cstdint>

#include "gpu_backends/api/stream.h"

namespace ferry::gpu {

static_assert(std::atomic_ref<uint64_t>::is_always_lock_free, "needed between processes");

// Pairs with WordMeets, here or in another process: publishes what the stream did before.
inline void StoreWord(uint64_t* word, uint64_t value) {
  std::atomic_ref<uint64_t>(*word).store(value, std::memory_order_release);
}

// Pairs with StoreWord, or with the release store of whoever else writes the word.
inline bool WordMeets(uint64_t* word, uint64_t value, WaitCondition condition) {
  const uint64_t current = std::atomic_ref<uint64_t>(*word).load(std::memory_order_acquire);
  return condition == WaitCondition::kEqual ? current == value : current >= value;
}

}  // namespace ferry::gpu
