// Atomic operations (OpenSHMEM 1.5, section 9.8): of the CPU, in place, so all PEs' agree. See
// operations.h.
#include <string>
#include <type_traits>

#include "client/shmem/fail.h"
#include "client/shmem/operations.h"
#include "client/shmem/reach.h"
#include "shm/atomic.h"

namespace ferry::shmem {
namespace {

// The standard asks for no order. Acquire and release cost nothing on x86, and let programs use
// atomics as flags, which many do.
constexpr auto kOrder = std::memory_order_acq_rel;

[[noreturn]] void FailUnaligned(const char* call, const void* dest, size_t bytes) {
  Fail(call, AddressText(dest) + " is no multiple of " + std::to_string(bytes) +
                 ", as the address of an atomic operation must be");
}

template <typename T>
T SwapIf(T& word, T condition, T value) {
  T found = condition;
  (void)shm::CompareExchange(word, found, value, kOrder);
  return found;
}

template <typename T>
T FetchXor(T& word, T value) {
  T found = shm::LoadAcquire(word);
  while (!shm::CompareExchange(word, found, static_cast<T>(found ^ value), kOrder)) {
  }
  return found;
}

}  // namespace

template <typename T>
T AtomicFetch(const char* call, Context* context, Atomic op, T* dest, T value, T condition,
              int pe) {
  std::byte* const there = Reach(call, context, dest, sizeof(T), pe);
  if (reinterpret_cast<uintptr_t>(there) % sizeof(T) != 0) [[unlikely]] {
    FailUnaligned(call, dest, sizeof(T));
  }
  T& word = *reinterpret_cast<T*>(there);
  switch (op) {
    case Atomic::kFetch:
      return shm::LoadAcquire(word);
    case Atomic::kSet:
      shm::StoreRelease(word, value);
      return value;
    case Atomic::kSwap:
      return shm::Exchange(word, value, kOrder);
    default:
      break;
  }
  if constexpr (std::is_integral_v<T>) {
    switch (op) {
      case Atomic::kCompareSwap:
        return SwapIf(word, condition, value);
      case Atomic::kAdd:
        return shm::FetchAdd(word, value, kOrder);
      case Atomic::kAnd:
        return shm::FetchAnd(word, value, kOrder);
      case Atomic::kOr:
        return shm::FetchOr(word, value, kOrder);
      case Atomic::kXor:
        return FetchXor(word, value);
      default:
        break;
    }
  }
  Fail(call, "there is no such atomic operation of this type");
}

template int32_t AtomicFetch(const char*, Context*, Atomic, int32_t*, int32_t, int32_t, int);
template uint32_t AtomicFetch(const char*, Context*, Atomic, uint32_t*, uint32_t, uint32_t, int);
template int64_t AtomicFetch(const char*, Context*, Atomic, int64_t*, int64_t, int64_t, int);
template uint64_t AtomicFetch(const char*, Context*, Atomic, uint64_t*, uint64_t, uint64_t, int);
template float AtomicFetch(const char*, Context*, Atomic, float*, float, float, int);
template double AtomicFetch(const char*, Context*, Atomic, double*, double, double, int);

}  // namespace ferry::shmem
