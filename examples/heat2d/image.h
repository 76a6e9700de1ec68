// Grey images in, colour pictures out.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace heat2d {

struct Image {
  int width = 0;
  int height = 0;
  std::vector<double> values;  // row by row from the top; 0 is black, 1 white
};

// Reads a PNG (colours become grey, 16 bits become 8) or a PGM (P2 or P5, up to 16 bits). False
// with a sentence in `error` when there is no such file or it holds no whole image of at most 64 Mi
// pixels.
bool LoadImage(const std::string& path, Image* image, std::string* error);

// Writes `values` (0 cold .. 1 hot) as a PNG in the colours of heat: black, violet, red, yellow,
// white.
bool SaveHeatMap(const std::string& path, const Image& image, std::string* error);

}  // namespace heat2d
