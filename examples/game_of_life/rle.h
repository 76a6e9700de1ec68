// Patterns of cellular automata in the run-length encoded format of .rle files: comments from '#',
// a line "x = 36, y = 9, rule = B3/S23", then runs of 'b' (dead), 'o' (alive) and '$' (end of row),
// and '!' at the end.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace life {

// The numbers of living neighbours, of eight, with which a cell is born or survives.
struct Rule {
  std::array<bool, 9> born{};
  std::array<bool, 9> survives{};
  // "B3/S23"
  std::string Text() const;
};
// Conway's: B3/S23.
Rule ConwaysRule();

struct Pattern {
  int width = 0;
  int height = 0;
  Rule rule = ConwaysRule();
  std::vector<uint8_t> cells;  // 0 or 1, row by row

  uint8_t& At(int x, int y) {
    return cells[static_cast<size_t>(y) * static_cast<size_t>(width) + static_cast<size_t>(x)];
  }
  uint8_t At(int x, int y) const { return const_cast<Pattern*>(this)->At(x, y); }
  size_t Living() const;
};

// Reads a pattern. False, with the reason in *error, for text that is none.
bool ReadRle(std::string_view text, Pattern* pattern, std::string* error);
// Writes a pattern, in lines of at most 70 characters, as the format wants.
std::string WriteRle(const Pattern& pattern);

}  // namespace life
