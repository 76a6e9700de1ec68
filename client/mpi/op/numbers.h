// The C++ types of the numbers that reductions are made on.
//
// For this folder.
#pragma once

#include <cstdint>
#include <type_traits>

#include "client/mpi/datatype/basic_type.h"

namespace ferry::mpi {

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

// A compiler without half precision: such types can be sent, not reduced.
#ifdef __FLT16_MANT_DIG__
inline constexpr bool kHasFloat16 = true;
using Float16 = _Float16;
#else
inline constexpr bool kHasFloat16 = false;
struct Float16 {
  uint16_t bits;
};
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
      return visit.template operator()<__float128>();
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
  return visit.template operator()<ComplexNumber<__float128>>();
}

}  // namespace ferry::mpi
