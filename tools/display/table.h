// Text tables for people: aligned columns under a header. Pure but for TerminalOf; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ferry::tools {

// The terminal that shows a text: how wide it is, and whether it has colours.
struct Terminal {
  size_t width = 80;
  bool colours = false;
};

// As wide as the terminal `fd` is, and coloured unless NO_COLOR is set or TERM says that it cannot
// be; the defaults if `fd` is not a terminal.
Terminal TerminalOf(int fd, const char* const* environment);

// A word for a state, such as "serving" or "died", or a sentence that begins with one ("deadlock:
// ..."), in the colour for good, doubtful or bad. Unchanged where there are no colours, or the word
// is none of these.
std::string Coloured(const std::string& text, const Terminal& terminal);
// A title.
std::string Bold(const std::string& text, const Terminal& terminal);

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
