// Numbers that were written as text: options, keys, what files and launchers say.
//
// Any thread.
#pragma once

#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>

namespace ferry {

// What the whole text says; nothing where it is no number, goes on after one, or says one that
// `Number` does not hold. No sign but a minus, no spaces, no prefix such as 0x.
template <typename Number>
std::optional<Number> NumberIn(std::string_view text, int base = 10) {
  Number number = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number, base);
  return error == std::errc() && stop == end ? std::optional(number) : std::nullopt;
}

}  // namespace ferry
