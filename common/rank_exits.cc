#include "common/rank_exits.h"

#include <charconv>
#include <system_error>
#include <vector>

namespace ferry {
namespace {

constexpr int kMostCode = 255;
constexpr int kMostSignal = 64;  // Linux has no larger one
constexpr uint32_t kMostRanks = 1U << 30;

std::string ListText(const std::map<int, uint32_t>& ranks) {
  std::string text;
  for (const auto& [number, count] : ranks) {
    text += (text.empty() ? "" : ",") + std::to_string(number) + "*" + std::to_string(count);
  }
  return text;
}

// The parts between the separators, all of them, also if empty.
std::vector<std::string_view> Split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (size_t at = text.find(separator); at != std::string_view::npos; at = text.find(separator)) {
    parts.push_back(text.substr(0, at));
    text.remove_prefix(at + 1);
  }
  parts.push_back(text);
  return parts;
}

// True if the text is a number from `least` to `most`, and nothing else.
template <typename Number>
bool ReadNumber(std::string_view text, Number least, Number most, Number* number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *number);
  return error == std::errc() && end == text.data() + text.size() && *number >= least &&
         *number <= most;
}

bool ReadList(std::string_view text, int least, int most, std::map<int, uint32_t>* ranks) {
  if (text.empty()) {
    return true;
  }
  for (const std::string_view part : Split(text, ',')) {
    const std::vector<std::string_view> words = Split(part, '*');
    int number = 0;
    uint32_t count = 0;
    if (words.size() != 2 || !ReadNumber(words[0], least, most, &number) ||
        !ReadNumber(words[1], uint32_t{1}, kMostRanks, &count) ||
        !ranks->emplace(number, count).second) {
      return false;
    }
  }
  return true;
}

}  // namespace

uint64_t RankExits::Ranks() const {
  uint64_t sum = 0;
  for (const auto* const ranks : {&codes, &signals}) {
    for (const auto& [number, count] : *ranks) {
      sum += count;
    }
  }
  return sum;
}

std::string TextOf(const RankExits& exits) {
  return (exits.job.has_value() ? std::to_string(*exits.job) : "") + ";" + ListText(exits.codes) +
         ";" + ListText(exits.signals);
}

std::optional<RankExits> ReadRankExits(std::string_view text) {
  const std::vector<std::string_view> parts = Split(text, ';');
  RankExits exits;
  int job = 0;
  if (parts.size() != 3 || (!parts[0].empty() && !ReadNumber(parts[0], 0, kMostCode, &job)) ||
      !ReadList(parts[1], 0, kMostCode, &exits.codes) ||
      !ReadList(parts[2], 1, kMostSignal, &exits.signals)) {
    return std::nullopt;
  }
  if (!parts[0].empty()) {
    exits.job = job;
  }
  return exits;
}

}  // namespace ferry
