// The building blocks of the definitions of OpenSHMEM's functions, which definitions.py writes: the
// two names of each function, and the way from the API's types to those of operations.h.
//
// For those definitions only.
#pragma once

#include <shmem.h>
#include <shmemx.h>

#include <complex>
#include <cstdint>
#include <type_traits>

#include "shmem/base/operations.h"
#include "shmem/rma/reach.h"

#if !defined(__clang__)
// gcc finds out that some of the functions throw nothing, and warns that their aliases do not say
// so.
#pragma GCC diagnostic ignored "-Wmissing-attributes"
#endif

// FERRY_SHMEM_CALL(int, shmem_my_pe, (void)) { ... }
// Defines pshmem_my_pe, and shmem_my_pe as a weak alias of it that a tool may replace.
#define FERRY_SHMEM_CALL(result, name, parameters)                             \
  extern "C" __attribute__((visibility("default"))) result p##name parameters; \
  extern "C" __attribute__((visibility("default"), weak, alias("p" #name)))    \
  result name parameters;                                                      \
  extern "C" result p##name parameters

namespace ferry::shmem {

// ---- The header's constants are those of operations.h ----
static_assert(SHMEM_THREAD_SINGLE == kSingle && SHMEM_THREAD_MULTIPLE == kMultiple);
static_assert(SHMEM_THREAD_FUNNELED == kFunneled && SHMEM_THREAD_SERIALIZED == kSerialized);
static_assert(SHMEM_CMP_EQ == kEq && SHMEM_CMP_NE == kNe && SHMEM_CMP_GT == kGt);
static_assert(SHMEM_CMP_GE == kGe && SHMEM_CMP_LT == kLt && SHMEM_CMP_LE == kLe);
static_assert(SHMEM_SIGNAL_SET == kSignalSet && SHMEM_SIGNAL_ADD == kSignalAdd);
static_assert(SHMEM_CTX_SERIALIZED == kSerializedContext && SHMEM_CTX_PRIVATE == kPrivateContext);
static_assert(SHMEM_CTX_NOSTORE == kNostore && SHMEM_TEAM_NUM_CONTEXTS == kNumContexts);
static_assert(SHMEM_MALLOC_ATOMICS_REMOTE == kAtomicsRemote);
static_assert(SHMEM_MALLOC_SIGNAL_REMOTE == kSignalRemote);

// ---- Lengths. One that does not fit into size_t becomes the largest, which no memory has. ----
inline size_t Bytes(size_t elements, size_t element_bytes) {
  size_t bytes;
  return __builtin_mul_overflow(elements, element_bytes, &bytes) ? SIZE_MAX : bytes;
}

inline Stride Strides(ptrdiff_t dest, ptrdiff_t source, size_t block, size_t blocks,
                      size_t element_bytes) {
  const auto bytes = [&](ptrdiff_t stride) {
    ptrdiff_t product;
    return __builtin_mul_overflow(stride, element_bytes, &product) ? PTRDIFF_MAX : product;
  };
  return {bytes(dest), bytes(source), Bytes(block, element_bytes), blocks};
}

// ---- Handles. The predefined ones are constants of the header; invalid ones are null. ----
inline Context* ContextOf(shmem_ctx_t handle) {
  return handle == SHMEM_CTX_DEFAULT ? DefaultContext() : reinterpret_cast<Context*>(handle);
}
inline Team* TeamOf(shmem_team_t handle) {
  if (handle == SHMEM_TEAM_WORLD) {
    return WorldTeam();
  }
  return handle == SHMEM_TEAM_SHARED ? SharedTeam() : reinterpret_cast<Team*>(handle);
}
inline shmem_ctx_t HandleOf(Context* context) {
  return context == DefaultContext() ? SHMEM_CTX_DEFAULT : reinterpret_cast<shmem_ctx_t>(context);
}
inline shmem_team_t HandleOf(Team* team) {
  if (team == WorldTeam()) {
    return SHMEM_TEAM_WORLD;
  }
  return team == SharedTeam() ? SHMEM_TEAM_SHARED : reinterpret_cast<shmem_team_t>(team);
}

inline Space* SpaceOf(shmemx_space_t handle) { return reinterpret_cast<Space*>(handle); }
inline shmemx_space_t HandleOf(Space* space) { return reinterpret_cast<shmemx_space_t>(space); }

inline shmemx_heap_info_t InfoOf(const HeapInfo& found) {
  return {.reserved_bytes = found.reserved_bytes,
          .size_bytes = found.size_bytes,
          .used_bytes = found.used_bytes,
          .largest_free_bytes = found.largest_free_bytes};
}

// ---- Groups of PEs ----
inline Group TeamGroup(shmem_team_t team) { return {TeamOf(team), 0, 0, 0}; }
inline Group WorldGroup() { return {WorldTeam(), 0, 0, 0}; }
// An invalid stride becomes 0, which the callee refuses.
inline Group ActiveSet(int start, int log_stride, int size) {
  const bool is_stride = log_stride >= 0 && log_stride < 31;
  return {nullptr, start, is_stride ? 1 << log_stride : 0, size};
}

// ---- Words that atomics and waits work on ----
template <typename T, bool is_float = std::is_floating_point_v<T>>
struct WordOf {
  using type = T;
};
template <typename T>
struct WordOf<T, false> {
  using Signed = std::conditional_t<sizeof(T) == 2, int16_t,
                                    std::conditional_t<sizeof(T) == 4, int32_t, int64_t>>;
  using type = std::conditional_t<std::is_signed_v<T>, Signed, std::make_unsigned_t<Signed>>;
  static_assert(sizeof(T) == sizeof(type));
};
template <typename T>
using Word = typename WordOf<T>::type;

// Carries out an atomic operation and returns the old value. `dest` alone decides on the type.
template <typename T>
T FetchBy(const char* call, Context* context, Atomic op, const T* dest,
          std::type_identity_t<T> value, std::type_identity_t<T> condition, int pe) {
  auto* word = reinterpret_cast<Word<T>*>(const_cast<T*>(dest));
  return static_cast<T>(AtomicFetch<Word<T>>(call, context, op, word, static_cast<Word<T>>(value),
                                             static_cast<Word<T>>(condition), pe));
}
// Begins an atomic operation, whose old value is in `found` after the next quiet. `found` null: the
// caller does not want it.
template <typename T>
void BeginBy(const char* call, Context* context, Atomic op, const T* dest,
             std::type_identity_t<T> value, std::type_identity_t<T> condition, int pe,
             std::type_identity_t<T>* found = nullptr) {
  auto* word = reinterpret_cast<Word<T>*>(const_cast<T*>(dest));
  AtomicBegin<Word<T>>(call, context, op, word, static_cast<Word<T>>(value),
                       static_cast<Word<T>>(condition), pe, reinterpret_cast<Word<T>*>(found));
}

// ---- Single elements ----
// In the heap of a local PE, a single element takes a look into a table and a store, or a load, in
// the function itself. Everything else is in a function apart, so that this one needs no stack.
template <typename T>
[[gnu::noinline]] void StoreElsewhere(const char* call, Context* context, T* dest, T value,
                                      int pe) {
  Put(call, context, dest, &value, sizeof(T), pe, Completion::kBlocking);
}
template <typename T>
void StoreTo(const char* call, Context* context, T* dest, std::type_identity_t<T> value, int pe) {
  if (void* const there = ReachLocalHeap(context, dest, sizeof(T), pe)) [[likely]] {
    *static_cast<T*>(there) = value;
  } else {
    StoreElsewhere(call, context, dest, value, pe);
  }
}
template <typename T>
[[gnu::noinline]] T LoadElsewhere(const char* call, Context* context, const T* source, int pe) {
  T value{};
  Get(call, context, &value, source, sizeof(T), pe, Completion::kBlocking);
  return value;
}
template <typename T>
T LoadFrom(const char* call, Context* context, const T* source, int pe) {
  const void* const there = ReachLocalHeap(context, source, sizeof(T), pe);
  return there != nullptr ? *static_cast<const T*>(there)
                          : LoadElsewhere(call, context, source, pe);
}

// Describes the variables of a wait or a test. `values`: one value, or one for each variable.
template <typename T>
WaitCall<Word<T>> Watch(const T* variables, size_t count, const int* status, size_t* indices,
                        int comparison, const T* values, bool values_are_many) {
  return {reinterpret_cast<const Word<T>*>(variables), count,          status, indices, comparison,
          reinterpret_cast<const Word<T>*>(values),    values_are_many};
}

// ---- Reductions ----
template <typename T>
constexpr ReduceType ReduceTypeOf() {
  if constexpr (std::is_same_v<T, std::complex<float>>) {
    return ReduceType::kComplexFloat;
  } else if constexpr (std::is_same_v<T, std::complex<double>>) {
    return ReduceType::kComplexDouble;
  } else if constexpr (std::is_floating_point_v<T>) {
    return sizeof(T) == sizeof(float)    ? ReduceType::kFloat
           : sizeof(T) == sizeof(double) ? ReduceType::kDouble
                                         : ReduceType::kLongDouble;
  } else {
    constexpr int kLog = __builtin_ctz(sizeof(T));
    return static_cast<ReduceType>(
        static_cast<int>(std::is_signed_v<T> ? ReduceType::kInt8 : ReduceType::kUint8) + kLog);
  }
}
static_assert(ReduceTypeOf<int64_t>() == ReduceType::kInt64);
static_assert(ReduceTypeOf<uint16_t>() == ReduceType::kUint16);

// ---- Teams ----
// The structure of operations.h has the same members, and the mask says which of them are set.
inline const TeamConfig* ConfigOf(const shmem_team_config_t* config, TeamConfig* copy) {
  if (config == nullptr) {
    return nullptr;
  }
  *copy = {.num_contexts = config->num_contexts};
  return copy;
}

}  // namespace ferry::shmem
