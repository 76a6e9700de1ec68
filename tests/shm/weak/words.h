// Put in front of the files of shm/, and of their litmus tests, when they are compiled for
// weak_machine.h: shared words, fences, copies and system calls then go to that machine.
//
// The files themselves are as they are. Names that they take from the standard library mean others
// here, once its own headers have been read.
#pragma once

#include <linux/futex.h>
#include <linux/membarrier.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <climits>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "tests/shm/weak/weak_machine.h"

namespace ferry::weak {

template <typename T>
class WordRef {
 public:
  static constexpr bool is_always_lock_free = std::atomic_ref<T>::is_always_lock_free;

  explicit WordRef(T& word) : word_(word) {}

  T load(std::memory_order order) const { return Value(LoadWord(&word_, sizeof(T), order)); }
  void store(T value, std::memory_order order) const {
    StoreWord(&word_, sizeof(T), Bits(value), order);
  }
  T exchange(T value, std::memory_order order) const {
    return Update(order, [value](T /*before*/) { return value; });
  }
  T fetch_add(T value, std::memory_order order) const {
    return Update(order, [value](T before) { return static_cast<T>(before + value); });
  }
  T fetch_or(T value, std::memory_order order) const {
    return Update(order, [value](T before) { return static_cast<T>(before | value); });
  }
  T fetch_and(T value, std::memory_order order) const {
    return Update(order, [value](T before) { return static_cast<T>(before & value); });
  }
  T fetch_xor(T value, std::memory_order order) const {
    return Update(order, [value](T before) { return static_cast<T>(before ^ value); });
  }
  bool compare_exchange_strong(T& expected, T desired, std::memory_order success,
                               std::memory_order failure) const {
    uint64_t bits = Bits(expected);
    const bool is_exchanged =
        CompareExchangeWord(&word_, sizeof(T), &bits, Bits(desired), success, failure);
    expected = Value(bits);
    return is_exchanged;
  }

 private:
  static_assert(sizeof(T) <= sizeof(uint64_t));

  static uint64_t Bits(const T& value) {
    uint64_t bits = 0;
    std::memcpy(&bits, &value, sizeof(T));
    return bits;
  }
  static T Value(uint64_t bits) {
    T value;
    std::memcpy(&value, &bits, sizeof(T));
    return value;
  }
  template <typename Change>
  T Update(std::memory_order order, Change&& change) const {
    return Value(UpdateWord(&word_, sizeof(T), order,
                            [&](uint64_t before) { return Bits(change(Value(before))); }));
  }

  T& word_;
};

inline void* Copy(void* to, const void* from, size_t size_bytes) {
  Read(from, size_bytes);
  Write(to, size_bytes);
  return std::memcpy(to, from, size_bytes);
}

// Only futexes, without a timeout.
inline long SystemCall(long number, const void* word, int operation, uint32_t value,
                       const timespec* /*timeout*/, const void* /*other*/, int /*mask*/) {
  Check(number == SYS_futex, "a system call that the machine does not have");
  if (operation == FUTEX_WAIT) {
    FutexWait(word, value);
  } else {
    FutexWake(word);
  }
  return 0;
}

// Only fences in all threads that have asked for them.
inline long SystemCall(long number, int command, int /*flags*/, int /*core*/) {
  Check(number == SYS_membarrier, "a system call that the machine does not have");
  if (command == MEMBARRIER_CMD_GLOBAL_EXPEDITED) {
    HeavyFence();
  } else {
    CoverThreads(true);
  }
  return 0;
}

inline int GiveWay() {
  Yield();
  return 0;
}

}  // namespace ferry::weak

// The names that the files say are qualified by std.
namespace std {  // NOLINT(cert-dcl58-cpp)
using ferry::weak::Copy;
using ferry::weak::Fence;
using ferry::weak::WordRef;
}  // namespace std

#define atomic_ref WordRef
#define atomic_thread_fence Fence
#define memcpy Copy
#define sched_yield ferry::weak::GiveWay
#define syscall ferry::weak::SystemCall
// Nor may they use x86's own orders.
#undef __x86_64__
