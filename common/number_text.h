// Numbers that were written as text: options, keys, values in files and from launchers.
//
// Any thread.
#pragma once

#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>

namespace ferry {

// Returns the number that the whole text is; nothing if it is no number, goes on after one, or is
// one that `Number` does not hold. No sign but a minus, no spaces, no prefix such as 0x.
template <typename Number>
std::optional<Number> NumberIn(std::string_view text, int base = 10) {
  Number number = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number, base);
  return error == std::errc() && stop == end ? std::optional(number) : std::nullopt;
}

}  // namespace ferry
