// The atomic operations of one_sided_layout.h on a word, by this CPU: all of them agree with each
// other and with those of every other CPU of the node. Any thread; does not block.
#pragma once

#include <cstddef>
#include <cstdint>

#include "shm/atomic.h"
#include "shm/layout/one_sided_layout.h"

namespace ferry::shm {

constexpr bool IsAtomic(OneSidedOperation operation) {
  return operation >= OneSidedOperation::kFetch && operation <= OneSidedOperation::kXor;
}

namespace internal {

// Changes a word by a loop, and not by fetch_and and its like: where several of those stand in one
// switch, and the caller may not want the old value, gcc 12 is known to forget the operand.
template <SharedWord T, typename Change>
T ChangeWord(T& word, std::memory_order order, Change change) {
  T found = LoadRelaxed(word);
  while (!CompareExchange(word, found, change(found), order)) {
  }
  return found;
}

}  // namespace internal

// Applies the operation, and returns the word's old value. OpenSHMEM asks for no order; acquire and
// release cost nothing on x86, and let programs use such words as flags, which many do.
template <SharedWord T>
T ApplyAtomic(T& word, OneSidedOperation operation, T operand, T compare) {
  constexpr auto kOrder = std::memory_order_acq_rel;
  T found = compare;
  switch (operation) {
    case OneSidedOperation::kSet:
    case OneSidedOperation::kSwap:
      return Exchange(word, operand, kOrder);
    case OneSidedOperation::kCompareSwap:
      (void)CompareExchange(word, found, operand, kOrder);
      return found;
    case OneSidedOperation::kAdd:
      return FetchAdd(word, operand, kOrder);
    case OneSidedOperation::kAnd:
      return internal::ChangeWord(word, kOrder, [operand](T before) { return before & operand; });
    case OneSidedOperation::kOr:
      return internal::ChangeWord(word, kOrder, [operand](T before) { return before | operand; });
    case OneSidedOperation::kXor:
      return internal::ChangeWord(word, kOrder, [operand](T before) { return before ^ operand; });
    default:
      return LoadAcquire(word);
  }
}

constexpr bool IsAtomicWidth(uint32_t width) {
  return width == 1 || width == 2 || width == 4 || width == 8;
}

// Applies the operation to a word of `width` bytes, aligned to its width, and returns its old
// value.
inline uint64_t ApplyAtomicAt(std::byte* word, uint32_t width, OneSidedOperation operation,
                              uint64_t operand, uint64_t compare) {
  const auto apply = [&]<typename T>(T* its_word) -> uint64_t {
    return ApplyAtomic(*its_word, operation, static_cast<T>(operand), static_cast<T>(compare));
  };
  switch (width) {
    case sizeof(uint8_t):
      return apply(reinterpret_cast<uint8_t*>(word));
    case sizeof(uint16_t):
      return apply(reinterpret_cast<uint16_t*>(word));
    case sizeof(uint32_t):
      return apply(reinterpret_cast<uint32_t*>(word));
    default:
      return apply(reinterpret_cast<uint64_t*>(word));
  }
}

// Updates a signal word. Pairs with the thread that waits for the signal: publishes the stores
// before this one.
inline void UpdateSignal(uint64_t& word, SignalUpdate update, uint64_t value) {
  if (update == SignalUpdate::kSet) {
    StoreRelease(word, value);
  } else if (update == SignalUpdate::kAdd) {
    FetchAdd(word, value, std::memory_order_release);
  }
}

}  // namespace ferry::shm
