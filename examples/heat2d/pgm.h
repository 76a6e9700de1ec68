// Netpbm's grey format (man 5 pgm): P2 in text, P5 in bytes, one or two per pixel.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "examples/heat2d/image.h"

namespace heat2d {

inline constexpr uint64_t kMaxPixels = uint64_t{64} << 20;

// Parses an image. False, with the reason in *error, if it cannot.
bool ParsePgm(std::string_view bytes, Image* image, std::string* error);

}  // namespace heat2d
