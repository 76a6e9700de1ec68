#include "tools/ferryctl/table.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <string_view>

namespace ferry::tools {
namespace {

constexpr std::string_view kGap = "  ";

size_t Width(std::string_view text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xc0) != 0x80; }));
}

std::string Padded(const std::string& text, size_t width, Align align) {
  const std::string blanks(width - Width(text), ' ');
  return align == Align::kLeft ? text + blanks : blanks + text;
}

}  // namespace

std::string Table::Text() const {
  std::vector<std::vector<std::string>> lines(1);
  for (const Column& column : columns_) {
    lines[0].push_back(column.title);
  }
  for (const std::vector<std::string>& row : rows_) {
    lines.push_back(row);
    std::replace(lines.back().begin(), lines.back().end(), std::string(), std::string("-"));
  }
  std::vector<size_t> widths(columns_.size());
  for (const std::vector<std::string>& line : lines) {
    for (size_t i = 0; i < widths.size(); ++i) {
      widths[i] = std::max(widths[i], Width(line[i]));
    }
  }
  std::string text;
  for (const std::vector<std::string>& line : lines) {
    for (size_t i = 0; i < widths.size(); ++i) {
      text += Padded(line[i], widths[i], columns_[i].align);
      text += kGap;
    }
    text.erase(text.find_last_not_of(' ') + 1);
    text += '\n';
  }
  return text;
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
