#include "examples/game_of_life/rle.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <numeric>
#include <optional>

namespace life {
namespace {

constexpr int kMaxSide = 1 << 16;
constexpr size_t kMaxCells = size_t{1} << 28;
constexpr size_t kLineLength = 70;

std::string Lower(std::string_view text) {
  std::string lower;
  for (const char c : text) {
    if (std::isspace(static_cast<unsigned char>(c)) == 0) {
      lower += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    }
  }
  return lower;
}

// "3" or "23" after its letter.
bool ReadCounts(std::string_view text, char letter, std::array<bool, 9>* counts) {
  if (text.empty() || text[0] != letter) {
    return false;
  }
  counts->fill(false);
  for (const char c : text.substr(1)) {
    if (c < '0' || c > '8') {
      return false;
    }
    (*counts)[static_cast<size_t>(c - '0')] = true;
  }
  return true;
}

std::optional<Rule> ReadRule(std::string_view text) {
  Rule rule;
  const size_t slash = text.find('/');
  if (slash == std::string_view::npos || !ReadCounts(text.substr(0, slash), 'b', &rule.born) ||
      !ReadCounts(text.substr(slash + 1), 's', &rule.survives) || rule.born[0]) {
    return std::nullopt;  // with B0 the empty plane would be born at once
  }
  return rule;
}

bool ReadSide(std::string_view text, int* side) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *side);
  return error == std::errc() && end == text.data() + text.size() && *side >= 1 &&
         *side <= kMaxSide;
}

// "x=36,y=9,rule=b3/s23", without blanks.
bool ReadHeader(std::string_view line, Pattern* pattern, std::string* error) {
  bool has_width = false;
  bool has_height = false;
  while (!line.empty()) {
    const size_t end = std::min(line.find(','), line.size());
    const std::string_view item = line.substr(0, end);
    const size_t equals = std::min(item.find('='), item.size());
    const std::string_view name = item.substr(0, equals);
    const std::string_view value = item.substr(std::min(equals + 1, item.size()));
    if (name == "x" || name == "y") {
      if (!ReadSide(value, name == "x" ? &pattern->width : &pattern->height)) {
        *error = "\"" + std::string(item) + "\" is no number of cells from 1 to " +
                 std::to_string(kMaxSide);
        return false;
      }
      (name == "x" ? has_width : has_height) = true;
    } else if (name == "rule") {
      const std::optional<Rule> rule = ReadRule(value);
      if (!rule) {
        *error = "the rule \"" + std::string(value) + "\" is none such as B3/S23";
        return false;
      }
      pattern->rule = *rule;
    }
    line.remove_prefix(std::min(end + 1, line.size()));
  }
  if (!has_width || !has_height) {
    *error = "the first line that is no comment must be such as \"x = 3, y = 3, rule = B3/S23\"";
    return false;
  }
  if (static_cast<size_t>(pattern->width) * static_cast<size_t>(pattern->height) > kMaxCells) {
    *error = "a pattern of so many cells is not read";
    return false;
  }
  return true;
}

// The cells, from runs.
class Reader {
 public:
  explicit Reader(Pattern* pattern) : pattern_(*pattern) {}

  // False, and *error, for what cannot be; *done once '!' came.
  bool Take(char c, bool* done, std::string* error) {
    if (c >= '0' && c <= '9') {
      run_ = run_ * 10 + (c - '0');
      if (run_ > kMaxSide) {
        *error = "a run is longer than any row";
        return false;
      }
      return true;
    }
    const int run = std::max(run_, 1);
    run_ = 0;
    if (c == '!') {
      *done = true;
    } else if (c == '$') {
      y_ += run;
      x_ = 0;
    } else if (c != 'b' && c != 'o') {
      *error = std::string("'") + c + "' is neither 'b', 'o', '$' nor '!'";
      return false;
    } else if (x_ + run > pattern_.width || y_ >= pattern_.height) {
      *error = "row " + std::to_string(y_ + 1) + " goes beyond the " +
               std::to_string(pattern_.width) + " x " + std::to_string(pattern_.height) +
               " cells of the first line";
      return false;
    } else {
      if (c == 'o') {
        std::fill_n(&pattern_.At(x_, y_), run, uint8_t{1});
      }
      x_ += run;
    }
    return true;
  }

 private:
  Pattern& pattern_;
  int run_ = 0;
  int x_ = 0;
  int y_ = 0;
};

// Appends tokens, breaking lines.
class Writer {
 public:
  void Put(int run, char what) {
    const std::string token = (run > 1 ? std::to_string(run) : "") + what;
    if (column_ + token.size() > kLineLength) {
      text_ += '\n';
      column_ = 0;
    }
    text_ += token;
    column_ += token.size();
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
  size_t column_ = 0;
};

}  // namespace

Rule ConwaysRule() {
  Rule rule;
  rule.born[3] = rule.survives[2] = rule.survives[3] = true;
  return rule;
}

std::string Rule::Text() const {
  std::string text = "B";
  for (size_t n = 0; n <= 8; ++n) {
    text += born[n] ? std::to_string(n) : "";
  }
  text += "/S";
  for (size_t n = 0; n <= 8; ++n) {
    text += survives[n] ? std::to_string(n) : "";
  }
  return text;
}

size_t Pattern::Living() const { return std::accumulate(cells.begin(), cells.end(), size_t{0}); }

bool ReadRle(std::string_view text, Pattern* pattern, std::string* error) {
  *pattern = Pattern();
  bool has_header = false;
  bool done = false;
  Reader reader(pattern);
  for (int number = 1; !done && !text.empty(); ++number) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string line = Lower(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.empty() || line[0] == '#') {
      continue;
    }
    bool fine = true;
    if (!has_header) {
      fine = has_header = ReadHeader(line, pattern, error);
      pattern->cells.assign(
          fine ? static_cast<size_t>(pattern->width) * static_cast<size_t>(pattern->height) : 0, 0);
    } else {
      for (size_t i = 0; fine && !done && i < line.size(); ++i) {
        fine = reader.Take(line[i], &done, error);
      }
    }
    if (!fine) {
      *error = "line " + std::to_string(number) + ": " + *error;
      return false;
    }
  }
  if (!done) {
    *error = has_header ? "there is no '!' at its end" : "it has no line with x and y";
    return false;
  }
  return true;
}

std::string WriteRle(const Pattern& pattern) {
  Writer writer;
  int rows = 0;  // ends of rows that are not written yet
  for (int y = 0; y < pattern.height; ++y) {
    int x = 0;
    while (x < pattern.width) {
      const uint8_t cell = pattern.At(x, y);
      int run = 1;
      while (x + run < pattern.width && pattern.At(x + run, y) == cell) {
        ++run;
      }
      x += run;
      if (cell == 0 && x == pattern.width) {
        break;  // dead cells at the end of a row are not written
      }
      if (rows > 0) {
        writer.Put(rows, '$');
        rows = 0;
      }
      writer.Put(run, cell != 0 ? 'o' : 'b');
    }
    ++rows;
  }
  writer.Put(1, '!');
  return "x = " + std::to_string(pattern.width) + ", y = " + std::to_string(pattern.height) +
         ", rule = " + pattern.rule.Text() + "\n" + writer.text() + "\n";
}

}  // namespace life
