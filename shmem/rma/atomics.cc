// Atomic operations (OpenSHMEM 1.5, section 9.8): of the CPU, in place, so all PEs' agree. See
// operations.h.
#include <bit>
#include <string>
#include <type_traits>

#include "shm/atomic.h"
#include "shm/atomic_operation.h"
#include "shmem/base/copies.h"
#include "shmem/base/fail.h"
#include "shmem/base/operations.h"
#include "shmem/rma/checks.h"
#include "shmem/rma/reach.h"
#include "shmem/rma/remote.h"

namespace ferry::shmem {
namespace {

[[noreturn]] void FailUnaligned(const char* call, const void* dest, size_t bytes) {
  Fail(call, AddressText(dest) + " is no multiple of " + std::to_string(bytes) +
                 ", as the address of an atomic operation must be");
}

[[noreturn, gnu::noinline]] void FailUnknown(const char* call) {
  Fail(call, "there is no such atomic operation of this type");
}

// Values as libferry passes them: bits, in the lower half if they are 4 bytes.
template <typename T>
using BitsOf = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;

template <typename T>
constexpr bool IsKnown(Atomic op) {
  return std::is_integral_v<T> ? shm::IsAtomic(op)
                               : op == Atomic::kFetch || op == Atomic::kSet || op == Atomic::kSwap;
}

// By this CPU. Returns the old value, but of kSet, which is a store.
template <typename T>
inline T Apply(const char* call, Atomic op, T& word, T value, T condition) {
  if (!IsKnown<T>(op)) [[unlikely]] {
    FailUnknown(call);
  }
  auto& bits = reinterpret_cast<BitsOf<T>&>(word);
  const auto operand = std::bit_cast<BitsOf<T>>(value);
  if (op == Atomic::kSet) {
    shm::StoreRelease(bits, operand);
    return value;
  }
  return std::bit_cast<T>(shm::ApplyAtomic(bits, op, operand, std::bit_cast<BitsOf<T>>(condition)));
}

template <typename T>
RemoteAtomic RemoteOf(Atomic op, T value, T condition) {
  return {.op = op,
          .width = sizeof(T),
          .value = std::bit_cast<BitsOf<T>>(value),
          .condition = std::bit_cast<BitsOf<T>>(condition)};
}
template <typename T>
T FromBits(uint64_t found) {
  return std::bit_cast<T>(static_cast<BitsOf<T>>(found));
}

template <typename T>
bool IsAligned(const T* address) {
  return reinterpret_cast<uintptr_t>(address) % sizeof(T) == 0;
}

// Null: somewhere else than in the heap of a local PE, or wrong.
template <typename T>
T* ReachLocalWord(Context* context, T* dest, int pe) {
  return IsAligned(dest) ? reinterpret_cast<T*>(ReachLocalHeap(context, dest, sizeof(T), pe))
                         : nullptr;
}

template <typename T>
PeAddress ReachVariable(const char* call, Context* context, T* dest, int pe) {
  const PeAddress target =
      ReachWordSlowly(call, context, "the variable's address", dest, sizeof(T), pe);
  if (!IsAligned(dest)) {
    FailUnaligned(call, dest, sizeof(T));
  }
  return target;
}

// Apart from the usual case, and with its arguments, so that that one is a few instructions and a
// jump.
template <typename T>
[[gnu::noinline]] T FetchElsewhere(const char* call, Context* context, Atomic op, T* dest, T value,
                                   T condition, int pe) {
  const PeAddress target = ReachVariable(call, context, dest, pe);
  return target.is_local()
             ? Apply(call, op, *reinterpret_cast<T*>(target.address()), value, condition)
             : FromBits<T>(FetchRemote(call, context, target, RemoteOf(op, value, condition)));
}

template <typename T>
[[gnu::noinline]] void BeginElsewhere(const char* call, Context* context, Atomic op, T* dest,
                                      T value, T condition, int pe, T* found) {
  const PeAddress target = ReachVariable(call, context, dest, pe);
  CheckLoadable(call, "fetch", found);
  if (job.is_checking && found != nullptr) {
    CheckGiven(call, {"fetch", found, sizeof(T)});
  }
  if (target.is_local()) {
    const T old = Apply(call, op, *reinterpret_cast<T*>(target.address()), value, condition);
    if (found != nullptr) {
      *found = old;
    }
  } else if (found == nullptr) {
    UpdateRemote(call, context, target, RemoteOf(op, value, condition));
  } else {
    BeginFetchRemote(call, context, target, RemoteOf(op, value, condition), found);
  }
}

}  // namespace

template <typename T>
T AtomicFetch(const char* call, Context* context, Atomic op, T* dest, T value, T condition,
              int pe) {
  if (T* const word = ReachLocalWord(context, dest, pe)) [[likely]] {
    return Apply(call, op, *word, value, condition);
  }
  return FetchElsewhere(call, context, op, dest, value, condition, pe);
}

template <typename T>
void AtomicBegin(const char* call, Context* context, Atomic op, T* dest, T value, T condition,
                 int pe, T* found) {
  T* const word = ReachLocalWord(context, dest, pe);
  if (word == nullptr || MayBeByStream(found)) [[unlikely]] {
    return BeginElsewhere(call, context, op, dest, value, condition, pe, found);
  }
  const T old = Apply(call, op, *word, value, condition);
  if (found != nullptr) {
    *found = old;
  }
}

template int32_t AtomicFetch(const char*, Context*, Atomic, int32_t*, int32_t, int32_t, int);
template uint32_t AtomicFetch(const char*, Context*, Atomic, uint32_t*, uint32_t, uint32_t, int);
template int64_t AtomicFetch(const char*, Context*, Atomic, int64_t*, int64_t, int64_t, int);
template uint64_t AtomicFetch(const char*, Context*, Atomic, uint64_t*, uint64_t, uint64_t, int);
template float AtomicFetch(const char*, Context*, Atomic, float*, float, float, int);
template double AtomicFetch(const char*, Context*, Atomic, double*, double, double, int);
template void AtomicBegin(const char*, Context*, Atomic, int32_t*, int32_t, int32_t, int, int32_t*);
template void AtomicBegin(const char*, Context*, Atomic, uint32_t*, uint32_t, uint32_t, int,
                          uint32_t*);
template void AtomicBegin(const char*, Context*, Atomic, int64_t*, int64_t, int64_t, int, int64_t*);
template void AtomicBegin(const char*, Context*, Atomic, uint64_t*, uint64_t, uint64_t, int,
                          uint64_t*);
template void AtomicBegin(const char*, Context*, Atomic, float*, float, float, int, float*);
template void AtomicBegin(const char*, Context*, Atomic, double*, double, double, int, double*);

}  // namespace ferry::shmem
