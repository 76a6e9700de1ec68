// Encodes an ErrorCode beside a gRPC status: as decimal text in its error details.
#pragma once

#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>

namespace ferry::control {

inline std::string EncodeErrorDetails(int32_t code) { return std::to_string(code); }

// Returns 0 when the text holds no code: then the failure was gRPC's own.
inline int32_t DecodeErrorDetails(std::string_view text) {
  int32_t code = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), code);
  return error == std::errc() && stop == text.data() + text.size() ? code : 0;
}

}  // namespace ferry::control
