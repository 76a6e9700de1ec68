#include "tools/ferryrun/node_list.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "common/number_text.h"

namespace ferry::tools {
namespace {

constexpr size_t kMostNameBytes = 255;  // of a host, as POSIX has it (_POSIX_HOST_NAME_MAX)
constexpr size_t kMostDigits = 18;      // numbers that a uint64_t holds in any case
constexpr size_t kQuotedBytes = 100;

Status Refuse(std::string message) { return {ErrorCode::kInvalidArgument, std::move(message)}; }

Status TooMany() { return Refuse("it names more than " + std::to_string(kMostNodes)); }

// A range of numbers, which are written with at least `width` digits.
struct Range {
  uint64_t first = 0;
  uint64_t last = 0;
  size_t width = 0;

  uint64_t size() const { return last - first + 1; }
};

StatusOr<uint64_t> ReadNumber(std::string_view digits) {
  const auto number = digits.size() <= kMostDigits && digits.find('-') == digits.npos
                          ? NumberIn<uint64_t>(digits)
                          : std::nullopt;
  return number ? StatusOr<uint64_t>(*number) : Refuse(Quote(digits) + " is no number");
}

StatusOr<Range> ReadRange(std::string_view text) {
  const size_t dash = text.find('-');
  const StatusOr<uint64_t> first = ReadNumber(text.substr(0, dash));
  FERRY_RETURN_IF_ERROR(first.status());
  const StatusOr<uint64_t> last = dash == text.npos ? first : ReadNumber(text.substr(dash + 1));
  FERRY_RETURN_IF_ERROR(last.status());
  if (*last < *first) {
    return Refuse(Quote(text) + " runs backwards");
  }
  return Range{*first, *last, std::min(dash, text.size())};
}

// Calls `take(word)` for each word between commas. Commas in brackets separate nothing if
// `brackets`.
template <typename Take>
Status ForEachWord(std::string_view text, bool brackets, Take&& take) {
  bool inside = false;
  size_t begin = 0;
  for (size_t i = 0; i <= text.size(); ++i) {
    if (i == text.size() || (text[i] == ',' && !inside)) {
      if (inside) {
        return Refuse("'[' without ']'");
      }
      if (i == begin) {
        return Refuse("there is nothing between two commas, or at an end");
      }
      FERRY_RETURN_IF_ERROR(take(text.substr(begin, i - begin)));
      begin = i + 1;
    } else if (brackets && (text[i] == '[' || text[i] == ']')) {
      if (inside == (text[i] == '[')) {
        return Refuse(inside ? "a bracket is opened in brackets" : "']' without '['");
      }
      inside = !inside;
    }
  }
  return {};
}

StatusOr<std::vector<Range>> ReadRanges(std::string_view text) {
  std::vector<Range> ranges;
  FERRY_RETURN_IF_ERROR(ForEachWord(text, /*brackets=*/false, [&ranges](std::string_view word) {
    StatusOr<Range> range = ReadRange(word);
    FERRY_RETURN_IF_ERROR(range.status());
    ranges.push_back(*range);
    return ranges.size() > kMostNodes ? TooMany() : Status();
  }));
  return ranges;
}

std::string Padded(uint64_t number, size_t width) {
  const std::string digits = std::to_string(number);
  return std::string(width > digits.size() ? width - digits.size() : 0, '0') + digits;
}

// Makes every name longer: by a text, or each into as many as the ranges have numbers.
Status Append(std::string_view text, const std::vector<Range>& ranges,
              std::vector<std::string>* names) {
  uint64_t numbers = 0;
  for (const Range& range : ranges) {
    if (range.size() > kMostNodes || (numbers += range.size()) > kMostNodes / names->size()) {
      return TooMany();
    }
  }
  std::vector<std::string> longer;
  longer.reserve(names->size() * std::max<uint64_t>(numbers, 1));
  for (const std::string& name : *names) {
    if (ranges.empty()) {
      longer.push_back(name + std::string(text));
    }
    for (const Range& range : ranges) {
      for (uint64_t number = range.first; number <= range.last; ++number) {
        longer.push_back(name + Padded(number, range.width));
      }
    }
  }
  *names = std::move(longer);
  return {};
}

// Adds the names of one word, such as "n[1-3]c[0-1]".
Status ExpandWord(std::string_view word, std::vector<std::string>* all) {
  if (word.substr(0, word.find('[')).size() > kMostNameBytes) {
    return Refuse("the name " + Quote(word) + " is too long");
  }
  std::vector<std::string> names(1);
  size_t bytes = 0;  // of a name, but for its numbers
  while (!word.empty()) {
    std::vector<Range> ranges;
    std::string_view text;
    if (word[0] == '[') {
      const size_t end = word.find(']');
      StatusOr<std::vector<Range>> read = ReadRanges(word.substr(1, end - 1));
      FERRY_RETURN_IF_ERROR(read.status());
      ranges = std::move(*read);
      word.remove_prefix(end + 1);
      bytes += kMostDigits;
    } else {
      text = word.substr(0, word.find('['));
      word.remove_prefix(text.size());
      bytes += text.size();
    }
    if (bytes > kMostNameBytes) {
      return Refuse("it has names of more than " + std::to_string(kMostNameBytes) + " bytes");
    }
    FERRY_RETURN_IF_ERROR(Append(text, ranges, &names));
  }
  if (all->size() + names.size() > kMostNodes) {
    return TooMany();
  }
  std::move(names.begin(), names.end(), std::back_inserter(*all));
  return {};
}

Status Within(std::string_view text, const Status& status) {
  return status.ok() ? status : Status(status.code(), Quote(text) + ": " + status.message());
}

// "2" or "2(x3)": how often which number.
StatusOr<std::pair<uint64_t, uint64_t>> ReadCount(std::string_view word) {
  constexpr std::string_view kTimes = "(x";
  const size_t open = word.find(kTimes);
  const StatusOr<uint64_t> number = ReadNumber(word.substr(0, open));
  FERRY_RETURN_IF_ERROR(number.status());
  StatusOr<uint64_t> times = uint64_t{1};
  if (open != word.npos) {
    times =
        word.ends_with(')')
            ? ReadNumber(word.substr(open + kTimes.size(), word.size() - open - kTimes.size() - 1))
            : Refuse(Quote(word) + " has no ')' at its end");
    FERRY_RETURN_IF_ERROR(times.status());
  }
  return *number > 0 && *times > 0
             ? StatusOr<std::pair<uint64_t, uint64_t>>(std::pair(*number, *times))
             : Refuse(Quote(word) + " counts nothing");
}

// A name that may be one of a range: "n08" is "n" and 8, of two digits.
struct Numbered {
  std::string_view stem;
  std::string_view digits;  // empty: it has no number
  uint64_t number = 0;
};

Numbered SplitNumber(std::string_view name) {
  const size_t last = name.find_last_not_of("0123456789");
  const size_t begin = last == name.npos ? 0 : last + 1;
  const auto number =
      name.size() - begin <= kMostDigits ? NumberIn<uint64_t>(name.substr(begin)) : std::nullopt;
  return number ? Numbered{name.substr(0, begin), name.substr(begin), *number}
                : Numbered{name, {}, 0};
}

}  // namespace

std::string ShortNodeList(const std::vector<std::string>& names) {
  std::string list;
  for (size_t i = 0; i < names.size();) {
    const Numbered first = SplitNumber(names[i]);
    std::string ranges;
    size_t end = i;
    while (end < names.size()) {
      const Numbered begin = SplitNumber(names[end]);
      if (begin.digits.empty() || begin.stem != first.stem) {
        break;
      }
      size_t count = 1;
      for (; end + count < names.size(); ++count) {
        const Numbered next = SplitNumber(names[end + count]);
        if (next.stem != first.stem || next.digits.size() != begin.digits.size() ||
            next.number != begin.number + count) {
          break;
        }
      }
      ranges += (ranges.empty() ? "" : ",") + std::string(begin.digits);
      ranges += count > 1 ? "-" + std::string(SplitNumber(names[end + count - 1]).digits) : "";
      end += count;
    }
    const bool is_alone = end <= i + 1;
    list += list.empty() ? "" : ",";
    list += is_alone ? names[i] : std::string(first.stem) + "[" + ranges + "]";
    i = is_alone ? i + 1 : end;
  }
  return list;
}

std::string Quote(std::string_view text) {
  return "'" + std::string(text.substr(0, kQuotedBytes)) +
         (text.size() > kQuotedBytes ? "...'" : "'");
}

StatusOr<std::vector<std::string>> ExpandNodeList(std::string_view text) {
  std::vector<std::string> names;
  FERRY_RETURN_IF_ERROR(Within(
      text, ForEachWord(text, /*brackets=*/true,
                        [&names](std::string_view word) { return ExpandWord(word, &names); })));
  return names;
}

StatusOr<std::vector<uint64_t>> ExpandCounts(std::string_view text, size_t count) {
  std::vector<uint64_t> counts;
  FERRY_RETURN_IF_ERROR(
      Within(text, ForEachWord(text, /*brackets=*/false, [&](std::string_view word) {
               const auto read = ReadCount(word);
               FERRY_RETURN_IF_ERROR(read.status());
               if (read->second > count - counts.size()) {
                 return Refuse("it has numbers for more than " + std::to_string(count) + " nodes");
               }
               counts.insert(counts.end(), read->second, read->first);
               return Status();
             })));
  if (counts.size() < count) {
    return Refuse(Quote(text) + ": it has numbers for " + std::to_string(counts.size()) +
                  " nodes only, of " + std::to_string(count));
  }
  return counts;
}

StatusOr<std::vector<uint64_t>> ExpandIds(std::string_view text) {
  const StatusOr<std::vector<Range>> ranges = ReadRanges(text);
  FERRY_RETURN_IF_ERROR(Within(text, ranges.status()));
  std::vector<uint64_t> ids;
  for (const Range& range : *ranges) {
    if (range.size() > kMostNodes - ids.size()) {
      return Within(text, TooMany());
    }
    for (uint64_t id = range.first; id <= range.last; ++id) {
      ids.push_back(id);
    }
  }
  return ids;
}

}  // namespace ferry::tools
