#include "examples/heat2d/image.h"

#include <png.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string_view>

#include "examples/heat2d/pgm.h"

namespace heat2d {
namespace {

constexpr std::string_view kPngSignature("\x89PNG\r\n\x1a\n", 8);

// Sets errno when it fails.
bool ReadFile(const std::string& path, std::string* bytes) {
  const std::unique_ptr<FILE, int (*)(FILE*)> file(fopen(path.c_str(), "rb"), &fclose);
  std::array<char, 65536> block;
  for (size_t size = 1; file && size > 0;) {
    size = fread(block.data(), 1, block.size(), file.get());
    bytes->append(block.data(), size);
  }
  return file && ferror(file.get()) == 0;
}

bool ParsePng(const std::string& bytes, Image* image, std::string* error) {
  png_image png{};
  png.version = PNG_IMAGE_VERSION;
  if (png_image_begin_read_from_memory(&png, bytes.data(), bytes.size()) == 0) {
    *error = std::string("no readable PNG: ") + png.message;
    return false;
  }
  if (uint64_t{png.width} * png.height > kMaxPixels) {
    *error = "too large: " + std::to_string(png.width) + " x " + std::to_string(png.height);
    png_image_free(&png);
    return false;
  }
  png.format = PNG_FORMAT_GRAY;
  png_color black{};
  std::vector<uint8_t> pixels(PNG_IMAGE_SIZE(png));
  if (png_image_finish_read(&png, &black, pixels.data(), 0, nullptr) == 0) {
    *error = std::string("damaged or truncated: ") + png.message;
    return false;
  }
  image->width = static_cast<int>(png.width);
  image->height = static_cast<int>(png.height);
  image->values.resize(pixels.size());
  std::transform(pixels.begin(), pixels.end(), image->values.begin(),
                 [](uint8_t pixel) { return pixel / 255.0; });
  return true;
}

struct Colour {
  double red, green, blue;
};

// Interpolates between six colours.
Colour HeatColour(double heat) {
  constexpr std::array<Colour, 6> kStops = {
      {{0, 0, 4}, {66, 10, 104}, {147, 38, 103}, {221, 81, 58}, {252, 165, 10}, {252, 255, 210}}};
  const double place = std::clamp(heat, 0.0, 1.0) * (kStops.size() - 1);
  const size_t stop = std::min(static_cast<size_t>(place), kStops.size() - 2);
  const double part = place - static_cast<double>(stop);
  const auto mix = [part](double a, double b) { return a + (b - a) * part; };
  return {mix(kStops[stop].red, kStops[stop + 1].red),
          mix(kStops[stop].green, kStops[stop + 1].green),
          mix(kStops[stop].blue, kStops[stop + 1].blue)};
}

}  // namespace

bool LoadImage(const std::string& path, Image* image, std::string* error) {
  std::string bytes;
  if (!ReadFile(path, &bytes)) {
    *error = "cannot read " + path + ": " + std::strerror(errno);
    return false;
  }
  std::string why;
  bool ok = false;
  if (bytes.empty()) {
    why = "the file is empty";
  } else if (std::string_view(bytes).starts_with(kPngSignature)) {
    ok = ParsePng(bytes, image, &why);
  } else {
    ok = ParsePgm(bytes, image, &why);
  }
  if (!ok) {
    *error = path + ": " + why;
  }
  return ok;
}

bool SaveHeatMap(const std::string& path, const Image& image, std::string* error) {
  std::vector<uint8_t> pixels;
  pixels.reserve(image.values.size() * 3);
  for (const double heat : image.values) {
    const Colour colour = HeatColour(heat);
    for (const double part : {colour.red, colour.green, colour.blue}) {
      pixels.push_back(static_cast<uint8_t>(std::lround(part)));
    }
  }
  png_image png{};
  png.version = PNG_IMAGE_VERSION;
  png.width = static_cast<png_uint_32>(image.width);
  png.height = static_cast<png_uint_32>(image.height);
  png.format = PNG_FORMAT_RGB;
  if (png_image_write_to_file(&png, path.c_str(), 0, pixels.data(), 0, nullptr) == 0) {
    *error = "cannot write " + path + ": " + png.message;
    return false;
  }
  return true;
}

}  // namespace heat2d
