// Bytes as text: tokens, secrets, names of jobs.
//
// Any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace ferry {

// Lower-case hexadecimal, two digits a byte.
inline std::string HexText(std::span<const uint8_t> bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const uint8_t byte : bytes) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

}  // namespace ferry
