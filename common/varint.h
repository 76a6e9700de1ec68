// Numbers of 7 bits a byte, the lowest first, as Protocol Buffers write them.
//
// Pure functions; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace ferry {

inline constexpr int kBitsOfVarintByte = 7;

inline void AppendVarint(uint64_t number, std::string* text) {
  while (number >= 1U << kBitsOfVarintByte) {
    text->push_back(static_cast<char>(number | 1U << kBitsOfVarintByte));
    number >>= kBitsOfVarintByte;
  }
  text->push_back(static_cast<char>(number));
}

// Takes a number from the beginning of `text`. Nothing: there is none that is whole.
inline std::optional<uint64_t> TakeVarint(std::string_view* text) {
  constexpr int kMostBits = 64;
  uint64_t number = 0;
  for (int shift = 0; shift < kMostBits && !text->empty(); shift += kBitsOfVarintByte) {
    const auto byte = static_cast<unsigned char>(text->front());
    text->remove_prefix(1);
    number |= static_cast<uint64_t>(byte & ((1U << kBitsOfVarintByte) - 1)) << shift;
    if (byte < 1U << kBitsOfVarintByte) {
      return number;
    }
  }
  return std::nullopt;
}

// Fold signed numbers, so that small ones stay short: 0, -1, 1, -2, 2... are 0, 1, 2, 3, 4...
inline uint64_t Folded(int64_t number) {
  return number < 0 ? 2 * static_cast<uint64_t>(-(number + 1)) + 1
                    : 2 * static_cast<uint64_t>(number);
}
inline int64_t Unfolded(uint64_t number) {
  const auto half = static_cast<int64_t>(number / 2);
  return number % 2 == 1 ? -half - 1 : half;
}

}  // namespace ferry
