// Text tables for people: aligned columns under a header. Pure; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tools/display/terminal.h"

namespace ferry::tools {

enum class Align { kLeft, kRight };

struct Column {
  std::string title;
  Align align = Align::kLeft;
  bool is_state = false;  // its cells are words that have a colour
};

class Table {
 public:
  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

  // One cell per column. An empty cell is shown as "-". Widths count UTF-8 characters.
  void AddRow(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  bool empty() const { return rows_.empty(); }

  // Header and rows, two spaces between columns, no blanks at line ends.
  std::string Text(const Terminal& terminal = {}) const;
  // If the terminal is not wide enough, splits the table into several, one below the other, each
  // with the first `keys` columns. A line is longer than that only if one column alone is too wide.
  std::string FittedText(const Terminal& terminal, size_t keys = 1) const;

 private:
  using Line = std::vector<std::string>;
  std::vector<Line> Lines() const;  // header and rows
  std::vector<size_t> WidthsOf(const std::vector<Line>& lines) const;
  // The text of these columns only.
  std::string TextOf(const std::vector<size_t>& shown, const Terminal& terminal) const;

  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

// "0 B", "512 B", "1.5 KiB", "64 MiB": three digits at most before the unit's change.
std::string BytesText(uint64_t bytes);
// "850 ms", "12 s", "3 min 5 s", "2 h 4 min", "5 d 3 h".
std::string DurationText(uint64_t milliseconds);

}  // namespace ferry::tools
