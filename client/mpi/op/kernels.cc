#include "client/mpi/op/kernels.h"

#include <cstddef>

#include "client/mpi/op/numbers.h"

namespace ferry::mpi {
namespace {

template <typename T>
inline constexpr bool kComputes = true;
template <>
inline constexpr bool kComputes<Float16> = kHasFloat16;
template <>
inline constexpr bool kComputes<ComplexNumber<Float16>> = kHasFloat16;

struct Sum {
  template <typename T>
  static constexpr bool kTakes = true;
  template <typename T>
  static T Of(T a, T b) {
    if constexpr (kIsInteger<T>) {
      using Wide = typename Wrapping<T>::Type;
      return static_cast<T>(static_cast<Wide>(a) + static_cast<Wide>(b));
    } else if constexpr (kIsComplex<T>) {
      return {a.real + b.real, a.imaginary + b.imaginary};
    } else {
      return a + b;
    }
  }
};

struct Prod {
  template <typename T>
  static constexpr bool kTakes = true;
  template <typename T>
  static T Of(T a, T b) {
    if constexpr (kIsInteger<T>) {
      using Wide = typename Wrapping<T>::Type;
      return static_cast<T>(static_cast<Wide>(a) * static_cast<Wide>(b));
    } else if constexpr (kIsComplex<T>) {
      return {a.real * b.real - a.imaginary * b.imaginary,
              a.real * b.imaginary + a.imaginary * b.real};
    } else {
      return a * b;
    }
  }
};

struct Min {
  template <typename T>
  static constexpr bool kTakes = !kIsComplex<T>;
  template <typename T>
  static T Of(T a, T b) {
    return a < b ? a : b;
  }
};

struct Max {
  template <typename T>
  static constexpr bool kTakes = !kIsComplex<T>;
  template <typename T>
  static T Of(T a, T b) {
    return a > b ? a : b;
  }
};

struct OfIntegers {
  template <typename T>
  static constexpr bool kTakes = kIsInteger<T>;
};

struct Band : OfIntegers {
  template <typename T>
  static T Of(T a, T b) {
    return static_cast<T>(a & b);
  }
};

struct Bor : OfIntegers {
  template <typename T>
  static T Of(T a, T b) {
    return static_cast<T>(a | b);
  }
};

struct Bxor : OfIntegers {
  template <typename T>
  static T Of(T a, T b) {
    return static_cast<T>(a ^ b);
  }
};

struct Land : OfIntegers {
  template <typename T>
  static T Of(T a, T b) {
    return static_cast<T>((a != 0) & (b != 0));
  }
};

struct Lor : OfIntegers {
  template <typename T>
  static T Of(T a, T b) {
    return static_cast<T>((a | b) != 0);
  }
};

struct Lxor : OfIntegers {
  template <typename T>
  static T Of(T a, T b) {
    return static_cast<T>((a != 0) != (b != 0));
  }
};

// Buffers of programs may lie anywhere, and hold numbers of types that only look like ours (long,
// long long).
template <typename T>
[[gnu::always_inline]] inline T Load(const void* buffer, int64_t offset) {
  T value;
  __builtin_memcpy(&value, static_cast<const char*>(buffer) + offset, sizeof(T));
  return value;
}

template <typename T>
[[gnu::always_inline]] inline void Store(void* buffer, int64_t offset, T value) {
  __builtin_memcpy(static_cast<char*>(buffer) + offset, &value, sizeof(T));
}

template <typename Operation, typename T>
[[gnu::always_inline]] inline void Loop(const void* a, const void* b, void* out, int64_t count) {
  constexpr int64_t kSize = sizeof(T);
  // If buffers are the same, an element depends on itself alone.
#pragma GCC ivdep
  for (int64_t i = 0; i < count; ++i) {
    Store(out, i * kSize, Operation::template Of<T>(Load<T>(a, i * kSize), Load<T>(b, i * kSize)));
  }
}

template <typename Operation, typename T>
void Plain(const void* a, const void* b, void* out, int64_t count) {
  Loop<Operation, T>(a, b, out, count);
}

#ifdef __x86_64__
template <typename Operation, typename T>
[[gnu::target("avx2")]] void Avx2(const void* a, const void* b, void* out, int64_t count) {
  Loop<Operation, T>(a, b, out, count);
}

bool HasAvx2() {
  static const bool has = __builtin_cpu_supports("avx2") != 0;
  return has;
}
#endif

template <typename Operation>
ReduceKernel KernelOf(NumberKind kind) {
  return VisitNumber(kind, []<typename T>() -> ReduceKernel {
    if constexpr (!kComputes<T> || !Operation::template kTakes<T>) {
      return nullptr;
    } else {
#ifdef __x86_64__
      if (HasAvx2()) {
        return &Avx2<Operation, T>;
      }
#endif
      return &Plain<Operation, T>;
    }
  });
}

// ---- pairs ----

template <typename Value, typename Index>
struct PairOf {
  Value value;
  Index index;
};

template <bool kMax, typename Value>
bool Precedes(Value a, Value b) {
  return kMax ? a > b : a < b;
}

// Does not touch gaps: the buffer may end behind the last element's data.
template <bool kMax, typename Value, typename Index>
void PairLoop(const void* a, const void* b, void* out, int64_t count) {
  using Pair = PairOf<Value, Index>;
  constexpr int64_t kSize = sizeof(Pair);
  constexpr int64_t kIndex = offsetof(Pair, index);
  for (int64_t i = 0; i < count; ++i) {
    const auto a_value = Load<Value>(a, i * kSize);
    const auto b_value = Load<Value>(b, i * kSize);
    const auto a_index = Load<Index>(a, i * kSize + kIndex);
    const auto b_index = Load<Index>(b, i * kSize + kIndex);
    const bool take_a = Precedes<kMax>(a_value, b_value) ||
                        (!Precedes<kMax>(b_value, a_value) && a_index < b_index);
    Store(out, i * kSize, take_a ? a_value : b_value);
    Store(out, i * kSize + kIndex, take_a ? a_index : b_index);
  }
}

template <bool kMax, typename Value>
ReduceKernel PairKernelOf(NumberKind index) {
  return VisitNumber(index, []<typename Index>() -> ReduceKernel {
    // Fortran has no pairs but of equal numbers: so its indices may be floating-point ones.
    if constexpr (kIsInteger<Index> || (std::is_same_v<Value, Index> && !kIsComplex<Index>)) {
      return &PairLoop<kMax, Value, Index>;
    } else {
      return nullptr;
    }
  });
}

template <bool kMax>
ReduceKernel PairKernelOf(const BasicType& pair) {
  return VisitNumber(pair.kind, [&]<typename Value>() -> ReduceKernel {
    if constexpr (kIsComplex<Value> || !kComputes<Value>) {
      return nullptr;
    } else {
      return PairKernelOf<kMax, Value>(pair.index_kind);
    }
  });
}

}  // namespace

ReduceKernel FindKernel(OpKind op, NumberKind kind) {
  switch (op) {
    case OpKind::kSum:
      return KernelOf<Sum>(kind);
    case OpKind::kProd:
      return KernelOf<Prod>(kind);
    case OpKind::kMin:
      return KernelOf<Min>(kind);
    case OpKind::kMax:
      return KernelOf<Max>(kind);
    case OpKind::kBand:
      return KernelOf<Band>(kind);
    case OpKind::kBor:
      return KernelOf<Bor>(kind);
    case OpKind::kBxor:
      return KernelOf<Bxor>(kind);
    case OpKind::kLand:
      return KernelOf<Land>(kind);
    case OpKind::kLor:
      return KernelOf<Lor>(kind);
    case OpKind::kLxor:
      return KernelOf<Lxor>(kind);
    case OpKind::kMinloc:
    case OpKind::kMaxloc:
    case OpKind::kReplace:
    case OpKind::kNoOp:
    case OpKind::kUser:
      break;
  }
  return nullptr;
}

ReduceKernel FindPairKernel(OpKind op, const BasicType& pair) {
  switch (op) {
    case OpKind::kMinloc:
      return PairKernelOf<false>(pair);
    case OpKind::kMaxloc:
      return PairKernelOf<true>(pair);
    default:
      return nullptr;
  }
}

}  // namespace ferry::mpi
