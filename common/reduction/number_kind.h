// How the machine counts with an element of a reduction. Plain data: any thread.
#pragma once

#include <cstdint>

namespace ferry::reduction {

// The numbers travel between nodes, as those of OpKind.
enum class NumberKind : uint8_t {
  kInt8 = 0,
  kInt16 = 1,
  kInt32 = 2,
  kInt64 = 3,
  kInt128 = 4,
  kUint8 = 5,
  kUint16 = 6,
  kUint32 = 7,
  kUint64 = 8,
  kFloat16 = 9,
  kFloat32 = 10,
  kFloat64 = 11,
  kLongDouble = 12,
  kFloat128 = 13,
  kComplex16 = 14,  // two kFloat16, and so on
  kComplex32 = 15,
  kComplex64 = 16,
  kComplexLongDouble = 17,
  kComplex128 = 18,
};
inline constexpr int kNumberKinds = 19;

namespace internal {
inline constexpr uint8_t kLong = sizeof(long double);
inline constexpr uint8_t kSizes[kNumberKinds] = {1, 2, 4,     8,  16, 1, 2,  4,         8, 2,
                                                 4, 8, kLong, 16, 4,  8, 16, 2 * kLong, 32};
}  // namespace internal

// In bytes.
constexpr int64_t SizeOf(NumberKind kind) { return internal::kSizes[static_cast<int>(kind)]; }

}  // namespace ferry::reduction
