#include "examples/heat2d/pgm.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <optional>
#include <system_error>

namespace heat2d {
namespace {

constexpr uint64_t kMaxLevel = 65535;

// Reads numbers separated by blanks and comments, which run from # to the line's end.
class Scanner {
 public:
  explicit Scanner(std::string_view bytes) : rest_(bytes) {}

  std::optional<uint64_t> Number() {
    while (!rest_.empty() && (IsSpace(rest_[0]) || rest_[0] == '#')) {
      const size_t end = rest_[0] == '#' ? std::min(rest_.find('\n'), rest_.size() - 1) : 0;
      rest_.remove_prefix(end + 1);
    }
    uint64_t number = 0;
    const auto [stop, status] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), number);
    if (status != std::errc()) {
      return std::nullopt;
    }
    rest_.remove_prefix(static_cast<size_t>(stop - rest_.data()));
    return number;
  }

  // The data behind the single blank after the header.
  std::string_view Raster() const { return rest_.empty() ? rest_ : rest_.substr(1); }

 private:
  static bool IsSpace(char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; }

  std::string_view rest_;
};

bool Fail(std::string* error, std::string why) {
  *error = std::move(why);
  return false;
}

bool Truncated(std::string* error, size_t present, size_t wanted) {
  return Fail(
      error, "truncated: " + std::to_string(present) + " of " + std::to_string(wanted) + " pixels");
}

bool ReadText(Scanner scanner, uint64_t level, Image* image, std::string* error) {
  for (size_t i = 0; i < image->values.size(); ++i) {
    const std::optional<uint64_t> pixel = scanner.Number();
    if (!pixel) {
      return Truncated(error, i, image->values.size());
    }
    if (*pixel > level) {
      return Fail(error, "pixel " + std::to_string(i) + " is " + std::to_string(*pixel) +
                             ", above the image's maximum of " + std::to_string(level));
    }
    image->values[i] = static_cast<double>(*pixel) / static_cast<double>(level);
  }
  return true;
}

bool ReadBytes(std::string_view raster, uint64_t level, Image* image, std::string* error) {
  const size_t pixel_bytes = level < 256 ? 1 : 2;  // two: most significant first
  if (raster.size() < image->values.size() * pixel_bytes) {
    return Truncated(error, raster.size() / pixel_bytes, image->values.size());
  }
  for (size_t i = 0; i < image->values.size(); ++i) {
    uint64_t pixel = 0;
    for (size_t byte = 0; byte < pixel_bytes; ++byte) {
      pixel = pixel << 8 | static_cast<uint8_t>(raster[i * pixel_bytes + byte]);
    }
    image->values[i] = static_cast<double>(std::min(pixel, level)) / static_cast<double>(level);
  }
  return true;
}

}  // namespace

bool ParsePgm(std::string_view bytes, Image* image, std::string* error) {
  const std::string_view magic = bytes.substr(0, 2);
  if (magic == "P3" || magic == "P6") {
    return Fail(error, "a colour image (PPM): convert it to PNG or to grey, as with ppmtopgm");
  }
  if (magic != "P2" && magic != "P5") {
    return Fail(error, "neither a PNG nor a PGM (P2 or P5) image");
  }
  Scanner scanner(bytes.substr(2));
  const std::optional<uint64_t> width = scanner.Number();
  const std::optional<uint64_t> height = scanner.Number();
  const std::optional<uint64_t> level = scanner.Number();
  if (!width || !height || !level) {
    return Fail(error, "truncated: its header lacks width, height or maximum");
  }
  if (*width == 0 || *height == 0) {
    return Fail(error,
                "no pixels: it is " + std::to_string(*width) + " x " + std::to_string(*height));
  }
  if (*width > kMaxPixels || *height > kMaxPixels / *width) {
    return Fail(error, "too large: " + std::to_string(*width) + " x " + std::to_string(*height));
  }
  if (*level == 0 || *level > kMaxLevel) {
    return Fail(error, "its maximum of " + std::to_string(*level) + " is not from 1 to 65535");
  }
  image->width = static_cast<int>(*width);
  image->height = static_cast<int>(*height);
  image->values.assign(*width * *height, 0);
  return magic == "P2" ? ReadText(scanner, *level, image, error)
                       : ReadBytes(scanner.Raster(), *level, image, error);
}

}  // namespace heat2d
