#include "common/reduction/kernels.h"

#include <cstddef>
#include <type_traits>

namespace ferry::reduction {
namespace {

// ---- The C++ types of numbers -------------------------------------------------------------------

// Two numbers in a row, as C's and Fortran's complex types are. Not std::complex: its product
// looks for infinities, which takes several times as long and cannot be vectorised.
template <typename T>
struct ComplexNumber {
  T real;
  T imaginary;
};

template <typename T>
inline constexpr bool kIsComplex = false;
template <typename T>
inline constexpr bool kIsComplex<ComplexNumber<T>> = true;

// std::is_integral and its kin leave out __int128.
template <typename T>
inline constexpr bool kIsInteger = std::is_integral_v<T> || std::is_same_v<T, __int128>;

// The type that sums and products are computed in: overflow wraps, and nothing is promoted to int.
template <typename T>
struct Wrapping {
  using Type = std::conditional_t<(sizeof(T) <= 4), uint32_t, uint64_t>;
};
template <>
struct Wrapping<__int128> {
  using Type = unsigned __int128;
};

// The formats of IEEE 754 with 16 and with 128 bits, by this compiler's names for them. gcc 12 has
// no _Float16 in C++ for Arm, and no __float128 there: __fp16 is the same format, with the
// arithmetic of float, and long double is the other (Procedure Call Standard for the Arm 64-bit
// Architecture, 5.9). Results are rounded where they are stored: convert them to Float16 in words.
// NoFloat: the compiler has no such numbers, so they can be sent, not reduced.
template <size_t kBytes>
struct NoFloat {
  alignas(kBytes) unsigned char bytes[kBytes];
};
#if defined(__aarch64__)
using Float16 = __fp16;
#elif defined(__FLT16_MANT_DIG__)
using Float16 = _Float16;
#else
using Float16 = NoFloat<2>;
#endif
#if defined(__SIZEOF_FLOAT128__)
using Float128 = __float128;
#elif __LDBL_MANT_DIG__ == 113
using Float128 = long double;
#else
using Float128 = NoFloat<16>;
#endif

// visit.template operator()<T>() with the type of the kind.
template <typename Visit>
decltype(auto) VisitNumber(NumberKind kind, Visit&& visit) {
  switch (kind) {
    case NumberKind::kInt8:
      return visit.template operator()<int8_t>();
    case NumberKind::kInt16:
      return visit.template operator()<int16_t>();
    case NumberKind::kInt32:
      return visit.template operator()<int32_t>();
    case NumberKind::kInt64:
      return visit.template operator()<int64_t>();
    case NumberKind::kInt128:
      return visit.template operator()<__int128>();
    case NumberKind::kUint8:
      return visit.template operator()<uint8_t>();
    case NumberKind::kUint16:
      return visit.template operator()<uint16_t>();
    case NumberKind::kUint32:
      return visit.template operator()<uint32_t>();
    case NumberKind::kUint64:
      return visit.template operator()<uint64_t>();
    case NumberKind::kFloat16:
      return visit.template operator()<Float16>();
    case NumberKind::kFloat32:
      return visit.template operator()<float>();
    case NumberKind::kFloat64:
      return visit.template operator()<double>();
    case NumberKind::kLongDouble:
      return visit.template operator()<long double>();
    case NumberKind::kFloat128:
      return visit.template operator()<Float128>();
    case NumberKind::kComplex16:
      return visit.template operator()<ComplexNumber<Float16>>();
    case NumberKind::kComplex32:
      return visit.template operator()<ComplexNumber<float>>();
    case NumberKind::kComplex64:
      return visit.template operator()<ComplexNumber<double>>();
    case NumberKind::kComplexLongDouble:
      return visit.template operator()<ComplexNumber<long double>>();
    case NumberKind::kComplex128:
      break;
  }
  return visit.template operator()<ComplexNumber<Float128>>();
}

// ---- Operations ---------------------------------------------------------------------------------

template <typename T>
inline constexpr bool kComputes = true;
template <size_t kBytes>
inline constexpr bool kComputes<NoFloat<kBytes>> = false;
template <typename T>
inline constexpr bool kComputes<ComplexNumber<T>> = kComputes<T>;

struct Sum {
  template <typename T>
  static constexpr bool kTakes = true;
  template <typename T>
  static T Of(T a, T b) {
    if constexpr (kIsInteger<T>) {
      using Wide = typename Wrapping<T>::Type;
      return static_cast<T>(static_cast<Wide>(a) + static_cast<Wide>(b));
    } else if constexpr (kIsComplex<T>) {
      using Part = decltype(a.real);
      return {static_cast<Part>(a.real + b.real), static_cast<Part>(a.imaginary + b.imaginary)};
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
      using Part = decltype(a.real);
      return {static_cast<Part>(a.real * b.real - a.imaginary * b.imaginary),
              static_cast<Part>(a.real * b.imaginary + a.imaginary * b.real)};
    } else {
      return a * b;
    }
  }
};

// kOf(a, b) for numbers that have an order.
template <auto kOf>
struct OfOrdered {
  template <typename T>
  static constexpr bool kTakes = !kIsComplex<T>;
  template <typename T>
  static T Of(T a, T b) {
    return kOf(a, b);
  }
};
using Min = OfOrdered<[](auto a, auto b) { return a < b ? a : b; }>;
using Max = OfOrdered<[](auto a, auto b) { return b < a ? a : b; }>;

// kOf(a, b), which may be promoted to int, for integers.
template <auto kOf>
struct OfIntegers {
  template <typename T>
  static constexpr bool kTakes = kIsInteger<T>;
  template <typename T>
  static T Of(T a, T b) {
    return static_cast<T>(kOf(a, b));
  }
};
using Band = OfIntegers<[](auto a, auto b) { return a & b; }>;
using Bor = OfIntegers<[](auto a, auto b) { return a | b; }>;
using Bxor = OfIntegers<[](auto a, auto b) { return a ^ b; }>;
using Land = OfIntegers<[](auto a, auto b) { return (a != 0) & (b != 0); }>;
using Lor = OfIntegers<[](auto a, auto b) { return (a | b) != 0; }>;
using Lxor = OfIntegers<[](auto a, auto b) { return (a != 0) != (b != 0); }>;

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
ReduceKernel PairKernelOf(NumberKind value, NumberKind index) {
  return VisitNumber(value, [&]<typename Value>() -> ReduceKernel {
    if constexpr (kIsComplex<Value> || !kComputes<Value>) {
      return nullptr;
    } else {
      return PairKernelOf<kMax, Value>(index);
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
    default:
      return nullptr;
  }
}

ReduceKernel FindPairKernel(OpKind op, NumberKind value, NumberKind index) {
  switch (op) {
    case OpKind::kMinloc:
      return PairKernelOf<false>(value, index);
    case OpKind::kMaxloc:
      return PairKernelOf<true>(value, index);
    default:
      return nullptr;
  }
}

}  // namespace ferry::reduction
