// The only way Ferry touches words in shared memory: std::atomic_ref with explicit orders.
//
// Every acquire and release names the place it pairs with in a comment ("Pairs with Foo::Bar").
// There are no standalone fences (ThreadSanitizer does not see them) and no volatile.
#pragma once

#include <atomic>
#include <cstdint>
#include <type_traits>

namespace ferry::shm {

template <typename T>
concept SharedWord = std::is_trivially_copyable_v<T> && std::atomic_ref<T>::is_always_lock_free;

template <SharedWord T>
inline T Load(const T& word, std::memory_order order) {
  // atomic_ref wants a non-const object; a load does not modify it.
  return std::atomic_ref<T>(const_cast<T&>(word)).load(order);
}

template <SharedWord T>
inline T LoadRelaxed(const T& word) {
  return Load(word, std::memory_order_relaxed);
}

template <SharedWord T>
inline T LoadAcquire(const T& word) {
  return Load(word, std::memory_order_acquire);
}

template <SharedWord T>
inline void StoreRelaxed(T& word, std::type_identity_t<T> value) {
  std::atomic_ref<T>(word).store(value, std::memory_order_relaxed);
}

template <SharedWord T>
inline void StoreRelease(T& word, std::type_identity_t<T> value) {
  std::atomic_ref<T>(word).store(value, std::memory_order_release);
}

template <SharedWord T>
inline T FetchAdd(T& word, std::type_identity_t<T> value, std::memory_order order) {
  return std::atomic_ref<T>(word).fetch_add(value, order);
}

template <SharedWord T>
inline T FetchOr(T& word, std::type_identity_t<T> value, std::memory_order order) {
  return std::atomic_ref<T>(word).fetch_or(value, order);
}

template <SharedWord T>
inline T FetchAnd(T& word, std::type_identity_t<T> value, std::memory_order order) {
  return std::atomic_ref<T>(word).fetch_and(value, order);
}

template <SharedWord T>
inline T FetchXor(T& word, std::type_identity_t<T> value, std::memory_order order) {
  return std::atomic_ref<T>(word).fetch_xor(value, order);
}

template <SharedWord T>
inline T Exchange(T& word, std::type_identity_t<T> value, std::memory_order order) {
  return std::atomic_ref<T>(word).exchange(value, order);
}

// Strong compare-and-swap; on failure `expected` holds the value found (acquire). `success` is not
// relaxed: gcc refuses a failure order that is stronger than it.
template <SharedWord T>
inline bool CompareExchange(T& word, T& expected, std::type_identity_t<T> desired,
                            std::memory_order success) {
  return std::atomic_ref<T>(word).compare_exchange_strong(expected, desired, success,
                                                          std::memory_order_acquire);
}

// Words of 16 bytes, at multiples of 16. std::atomic_ref would take locks of a library for them,
// which other processes do not take. All x86-64 CPUs since 2006 have the instruction.
#if defined(__x86_64__) || defined(__aarch64__)
inline constexpr bool kHasWideWords = true;
#else
inline constexpr bool kHasWideWords = false;
#endif
using WideWord = unsigned __int128;

// Loads a word in two halves, so perhaps a mixture of two values: a guess for CompareExchange.
inline WideWord LoadRelaxed(const WideWord& word) {
  const auto* const halves = reinterpret_cast<const uint64_t*>(&word);
  return LoadRelaxed(halves[0]) | static_cast<WideWord>(LoadRelaxed(halves[1])) << 64;
}

// Strong compare-and-swap of a word of 16 bytes; a full barrier, whatever the order passed.
#ifdef __x86_64__
[[gnu::target("cx16")]]
#endif
inline bool
CompareExchange(WideWord& word, WideWord& expected, WideWord desired,
                std::memory_order /*success*/) {
  const WideWord found = __sync_val_compare_and_swap(&word, expected, desired);
  const bool is_exchanged = found == expected;
  expected = found;
  return is_exchanged;
}

// Two neighbouring 32-bit words, the first of them 8-byte aligned, as one: little-endian, so
// `first` is the lower half. For a compare-and-swap that must see both.
inline uint64_t& PairAt(uint32_t& first) {
  return *static_cast<uint64_t*>(static_cast<void*>(&first));
}

}  // namespace ferry::shm
