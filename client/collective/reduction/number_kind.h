// How the machine counts with an element of a reduction. Plain data: any thread.
#pragma once

#include <cstdint>

namespace ferry::collective {

enum class NumberKind : uint8_t {
  kInt8,
  kInt16,
  kInt32,
  kInt64,
  kInt128,
  kUint8,
  kUint16,
  kUint32,
  kUint64,
  kFloat16,
  kFloat32,
  kFloat64,
  kLongDouble,
  kFloat128,
  kComplex16,  // two kFloat16, and so on
  kComplex32,
  kComplex64,
  kComplexLongDouble,
  kComplex128,
};
inline constexpr int kNumberKinds = 19;

// In bytes.
constexpr int64_t SizeOf(NumberKind kind) {
  constexpr int64_t kLong = sizeof(long double);
  constexpr int64_t kSizes[kNumberKinds] = {1, 2, 4,     8,  16, 1, 2,  4,         8, 2,
                                            4, 8, kLong, 16, 4,  8, 16, 2 * kLong, 32};
  return kSizes[static_cast<int>(kind)];
}

}  // namespace ferry::collective
