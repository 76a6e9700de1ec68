// Bytes as text: tokens, secrets, names of jobs.
//
// Any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace ferry {

// Lower-case hexadecimal, two digits a byte.
std::string HexText(std::span<const uint8_t> bytes);

}  // namespace ferry
