#include "tools/display/table.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <numeric>

#include "config/environment.h"

namespace ferry::tools {
namespace {

constexpr char kPlain[] = "\033[0m";
constexpr char kBold[] = "\033[1m";
constexpr char kRed[] = "\033[31m";
constexpr char kGreen[] = "\033[32m";
constexpr char kYellow[] = "\033[33m";

struct Word {
  std::string_view text;
  const char* colour;
};

// States of daemons, jobs, ranks, links and findings.
constexpr Word kWords[] = {
    {"ok", kGreen},       {"serving", kGreen},     {"joined", kGreen}, {"running", kGreen},
    {"up", kGreen},       {"draining", kYellow},   {"waits", kYellow}, {"joins", kYellow},
    {"warning", kYellow}, {"connecting", kYellow}, {"cut", kYellow},   {"absent", kYellow},
    {"problem", kRed},    {"stopped", kRed},       {"died", kRed},     {"failed", kRed},
    {"aborted", kRed},    {"unreachable", kRed},   {"deadlock", kRed}, {"trouble", kRed},
};

std::string Painted(const char* colour, const std::string& text) { return colour + text + kPlain; }

constexpr std::string_view kGap = "  ";

size_t Width(std::string_view text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xc0) != 0x80; }));
}

}  // namespace

Terminal TerminalOf(int fd, const char* const* environment) {
  Terminal terminal;
  if (isatty(fd) != 1) {
    return terminal;
  }
  winsize size{};
  if (ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col != 0) {
    terminal.width = size.ws_col;
  }
  const bool unwanted = !config::FindVariable(environment, "NO_COLOR").value_or("").empty();
  const std::string_view kind = config::FindVariable(environment, "TERM").value_or("");
  terminal.colours = !unwanted && !kind.empty() && kind != "dumb";
  return terminal;
}

std::string Coloured(const std::string& text, const Terminal& terminal) {
  if (!terminal.colours) {
    return text;
  }
  const std::string_view first = std::string_view(text).substr(0, text.find_first_of(" :"));
  for (const Word& word : kWords) {
    if (word.text == first) {
      return Painted(word.colour, text);
    }
  }
  return text;
}

std::string Bold(const std::string& text, const Terminal& terminal) {
  return terminal.colours ? Painted(kBold, text) : text;
}

std::vector<Table::Line> Table::Lines() const {
  std::vector<Line> lines(1);
  for (const Column& column : columns_) {
    lines[0].push_back(column.title);
  }
  for (const Line& row : rows_) {
    lines.push_back(row);
    std::replace(lines.back().begin(), lines.back().end(), std::string(), std::string("-"));
  }
  return lines;
}

std::vector<size_t> Table::WidthsOf(const std::vector<Line>& lines) const {
  std::vector<size_t> widths(columns_.size());
  for (const Line& line : lines) {
    for (size_t i = 0; i < widths.size(); ++i) {
      widths[i] = std::max(widths[i], Width(line[i]));
    }
  }
  return widths;
}

std::string Table::TextOf(const std::vector<size_t>& shown, const Terminal& terminal) const {
  const std::vector<Line> lines = Lines();
  const std::vector<size_t> widths = WidthsOf(lines);
  std::string text;
  for (size_t row = 0; row < lines.size(); ++row) {
    std::string line;
    std::string blanks;  // in front of the next cell, so that no line ends with some
    for (const size_t i : shown) {
      const std::string& cell = lines[row][i];
      const std::string pad(widths[i] - Width(cell), ' ');
      const std::string painted = row == 0               ? Bold(cell, terminal)
                                  : columns_[i].is_state ? Coloured(cell, terminal)
                                                         : cell;
      const bool left = columns_[i].align == Align::kLeft;
      line += blanks + (left ? "" : pad) + painted;
      blanks = (left ? pad : "") + std::string(kGap);
    }
    text += line + '\n';
  }
  return text;
}

std::string Table::Text(const Terminal& terminal) const {
  std::vector<size_t> all(columns_.size());
  std::iota(all.begin(), all.end(), size_t{0});
  return TextOf(all, terminal);
}

std::string Table::FittedText(const Terminal& terminal, size_t keys) const {
  const std::vector<size_t> widths = WidthsOf(Lines());
  std::vector<size_t> key_columns(std::min(keys, columns_.size()));
  std::iota(key_columns.begin(), key_columns.end(), size_t{0});
  size_t key_width = 0;
  for (const size_t i : key_columns) {
    key_width += widths[i] + kGap.size();
  }
  std::string text;
  std::vector<size_t> shown = key_columns;
  size_t width = key_width;
  for (size_t i = key_columns.size(); i < columns_.size(); ++i) {
    if (width + widths[i] > terminal.width && shown.size() > key_columns.size()) {
      text += TextOf(shown, terminal) + "\n";
      shown = key_columns;
      width = key_width;
    }
    shown.push_back(i);
    width += widths[i] + kGap.size();
  }
  return text + TextOf(shown, terminal);
}

std::string BytesText(uint64_t bytes) {
  constexpr std::array kUnits = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  size_t unit = 0;
  auto value = static_cast<double>(bytes);
  while (value >= 999.5 && unit + 1 < kUnits.size()) {
    value /= 1024;
    ++unit;
  }
  const bool whole = unit == 0 || value >= 99.95 || value == std::floor(value);
  char text[32];
  std::snprintf(text, sizeof(text), whole ? "%.0f %s" : "%.1f %s", value, kUnits[unit]);
  return text;
}

std::string DurationText(uint64_t milliseconds) {
  const uint64_t seconds = milliseconds / 1000;
  const auto two = [](uint64_t large, const char* large_unit, uint64_t small,
                      const char* small_unit) {
    return std::to_string(large) + " " + large_unit + " " + std::to_string(small) + " " +
           small_unit;
  };
  if (seconds == 0) {
    return std::to_string(milliseconds) + " ms";
  }
  if (seconds < 60) {
    return std::to_string(seconds) + " s";
  }
  if (seconds < 3600) {
    return two(seconds / 60, "min", seconds % 60, "s");
  }
  if (seconds < 86400) {
    return two(seconds / 3600, "h", seconds % 3600 / 60, "min");
  }
  return two(seconds / 86400, "d", seconds % 86400 / 3600, "h");
}

}  // namespace ferry::tools
