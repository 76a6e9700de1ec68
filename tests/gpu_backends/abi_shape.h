// Compares functions as the machine sees them: the number of arguments, and for each whether it is
// a pointer, a number or a struct, and its size. So an enum of a vendor's is as good as the int
// that Ferry declares in its place.
#pragma once

#include <cstddef>
#include <type_traits>
#include <vector>

namespace ferry::gpu {

struct AbiType {
  enum Class { kVoid, kPointer, kNumber, kFloat, kStruct } kind;
  size_t size_bytes;
  bool operator==(const AbiType&) const = default;
};

template <typename T>
AbiType AbiTypeOf() {
  if constexpr (std::is_void_v<T>) {
    return {AbiType::kVoid, 0};
  } else if constexpr (std::is_pointer_v<T>) {
    return {AbiType::kPointer, sizeof(T)};
  } else if constexpr (std::is_floating_point_v<T>) {
    return {AbiType::kFloat, sizeof(T)};
  } else if constexpr (std::is_integral_v<T> || std::is_enum_v<T>) {
    return {AbiType::kNumber, sizeof(T)};
  } else {
    return {AbiType::kStruct, sizeof(T)};
  }
}

// The result's type, then the arguments'.
template <typename Result, typename... Arguments>
std::vector<AbiType> AbiShape(Result (*)(Arguments...)) {
  return {AbiTypeOf<Result>(), AbiTypeOf<Arguments>()...};
}

}  // namespace ferry::gpu
