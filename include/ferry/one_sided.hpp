// one_sided.hpp - a thin C++ wrapper of one_sided.h: contexts that end with their scope, words by
// their type.
//
// Header-only; every call behaves as its C counterpart says, and throws ferry::Error instead of
// returning a code. Objects must be gone before the Session ends.
//
//   ferry::Buffer<uint64_t> counters(8);
//   ferry_place place = ferry::Locate(counters);      // told to the others, by a message
//   ...
//   ferry::Context context;
//   context.Add<uint64_t>(place, 1);                  // in any rank
//   context.Quiet();
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "ferry/ferry.hpp"
#include "ferry/one_sided.h"

namespace ferry {

// Returns the place of a buffer's elements from `index` on.
template <typename T>
ferry_place Locate(const Buffer<T>& buffer, size_t index = 0) {
  ferry_place place{};
  Check(ferry_locate(buffer.data() + index, (buffer.size() - index) * sizeof(T), &place));
  return place;
}

// A type that atomic operations take: 4 or 8 bytes, trivially copyable.
template <typename T>
concept AtomicWord = std::is_trivially_copyable_v<T> &&(sizeof(T) == 4 || sizeof(T) == 8);

// A context of its own. Its destructor waits for the operations that were begun, and cannot report
// failures: call Quiet before.
class Context {
 public:
  Context() { Check(ferry_context_create(&handle_)); }
  ~Context() { (void)ferry_context_destroy(&handle_); }
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  // The C handle, for the calls that have no member here.
  ferry_context handle() const { return handle_; }

  void Put(ferry_place to, const void* from, size_t size_bytes) {
    Check(ferry_put(handle_, to, from, size_bytes));
  }
  // Begins a put whose source must not change until Quiet.
  void PutNbi(ferry_place to, const void* from, size_t size_bytes) {
    Check(ferry_put_nbi(handle_, to, from, size_bytes));
  }
  void PutSignal(ferry_place to, const void* from, size_t size_bytes, ferry_signal_update update,
                 ferry_place signal, uint64_t value) {
    Check(ferry_put_signal(handle_, to, from, size_bytes, update, signal, value));
  }
  void Get(void* to, ferry_place from, size_t size_bytes) {
    Check(ferry_get(handle_, to, from, size_bytes));
  }
  void GetNonblocking(void* to, ferry_place from, size_t size_bytes) {
    Check(ferry_get_nbi(handle_, to, from, size_bytes));
  }

  template <AtomicWord T>
  T Fetch(ferry_place word) {
    return FetchBy(FERRY_ATOMIC_FETCH, word, T{}, T{});
  }
  template <AtomicWord T>
  void Set(ferry_place word, T value) {
    Check(ferry_atomic(handle_, FERRY_ATOMIC_SET, word, sizeof(T), BitsOf(value), 0));
  }
  template <AtomicWord T>
  T Swap(ferry_place word, T value) {
    return FetchBy(FERRY_ATOMIC_SWAP, word, value, T{});
  }
  // Stores `value` if the word is `expected`. Returns the word's previous value.
  template <AtomicWord T>
  T CompareSwap(ferry_place word, T expected, T value) {
    return FetchBy(FERRY_ATOMIC_COMPARE_SWAP, word, value, expected);
  }
  template <AtomicWord T>
  requires std::is_integral_v<T>
  void Add(ferry_place word, T value) {
    Check(ferry_atomic(handle_, FERRY_ATOMIC_ADD, word, sizeof(T), BitsOf(value), 0));
  }
  template <AtomicWord T>
  requires std::is_integral_v<T> T FetchAdd(ferry_place word, T value) {
    return FetchBy(FERRY_ATOMIC_ADD, word, value, T{});
  }

  void Fence() { Check(ferry_fence(handle_)); }
  void Quiet() { Check(ferry_quiet(handle_)); }
  void Quiet(int rank) { Check(ferry_quiet_rank(handle_, rank)); }

 private:
  template <typename T>
  using Bits = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
  template <typename T>
  static uint64_t BitsOf(T value) {
    return std::bit_cast<Bits<T>>(value);
  }
  template <typename T>
  T FetchBy(ferry_atomic_operation operation, ferry_place word, T operand, T compare) {
    uint64_t found = 0;
    Check(ferry_atomic_fetch(handle_, operation, word, sizeof(T), BitsOf(operand), BitsOf(compare),
                             &found));
    return std::bit_cast<T>(static_cast<Bits<T>>(found));
  }

  ferry_context handle_ = FERRY_CONTEXT_DEFAULT;
};

}  // namespace ferry
