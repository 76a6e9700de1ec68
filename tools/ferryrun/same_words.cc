#include "tools/ferryrun/same_words.h"

#include <algorithm>
#include <utility>

#include "common/library_words.h"

namespace ferry::tools {
namespace {

constexpr size_t kMostRanges = 16;

// "0-3, 7, 9-12", and no end of it where there are many.
std::string Ranges(std::vector<uint32_t> ranks) {
  std::sort(ranks.begin(), ranks.end());
  std::string text;
  size_t ranges = 0;
  for (size_t i = 0; i < ranks.size();) {
    size_t end = i + 1;
    while (end < ranks.size() && ranks[end] == ranks[end - 1] + 1) {
      ++end;
    }
    if (ranges++ == kMostRanges) {
      return text + ", ...";
    }
    text += (i == 0 ? "" : ", ") + std::to_string(ranks[i]);
    text += end - i > 1 ? "-" + std::to_string(ranks[end - 1]) : "";
    i = end;
  }
  return text;
}

// True if the bit was not set yet.
bool Set(std::vector<bool>* bits, uint32_t index) {
  bits->resize(std::max<size_t>(bits->size(), index + 1));
  const bool was_set = (*bits)[index];
  (*bits)[index] = true;
  return !was_set;
}

}  // namespace

uint64_t SameWords::Saying::due_ns() const {
  return more.empty() ? 0 : std::min(last_more_ns + kQuietNs, first_more_ns + kPatienceNs);
}

bool SameWords::IsNew(uint32_t rank, std::string_view words, uint64_t now_ns) {
  const auto found = std::find_if(sayings_.begin(), sayings_.end(),
                                  [&](const Saying& saying) { return saying.words == words; });
  if (found != sayings_.end() && Set(&found->said_by, rank)) {
    found->first_more_ns = found->more.empty() ? now_ns : found->first_more_ns;
    found->last_more_ns = now_ns;
    found->more.push_back(rank);
    return false;
  }
  Saying begun{.words = std::string(words), .said_by = {}, .more = {}};
  Set(&begun.said_by, rank);
  // Words that the rank says once more begin anew; so do those of long ago.
  const bool is_full = sayings_.size() == kMostRemembered;
  if (const auto old = found == sayings_.end() && is_full ? sayings_.begin() : found;
      old != sayings_.end()) {
    if (!old->more.empty()) {
      told_.push_back(Tell(&*old));
    }
    sayings_.erase(old);
  }
  sayings_.push_back(std::move(begun));
  return true;
}

std::string SameWords::Sift(uint32_t rank, std::string_view bytes, uint64_t now_ns) {
  mid_line_.resize(std::max<size_t>(mid_line_.size(), rank + 1));
  std::string rest;
  while (!bytes.empty()) {
    const size_t end = bytes.find('\n');
    const std::string_view line = bytes.substr(0, end == bytes.npos ? end : end + 1);
    const bool is_whole = end != bytes.npos && !mid_line_[rank];
    std::string_view words = line;
    if (!is_whole || !words.starts_with(kLibraryWords)) {
      rest += line;
    } else {
      words.remove_prefix(kLibraryWords.size());
      words.remove_suffix(1);
      const std::string own = RankWords(rank);
      words.remove_prefix(words.starts_with(own) ? own.size() : 0);
      rest += IsNew(rank, words, now_ns) ? line : "";
    }
    mid_line_[rank] = end == bytes.npos;
    bytes.remove_prefix(line.size());
  }
  return rest;
}

uint64_t SameWords::deadline_ns() const {
  uint64_t next_ns = told_.empty() ? 0 : 1;  // at once
  for (const Saying& saying : sayings_) {
    const uint64_t due_ns = saying.due_ns();
    next_ns = due_ns == 0 || (next_ns != 0 && next_ns < due_ns) ? next_ns : due_ns;
  }
  return next_ns;
}

std::vector<std::string> SameWords::TakeDue(uint64_t now_ns) {
  std::vector<std::string> told = std::exchange(told_, {});
  for (Saying& saying : sayings_) {
    if (const uint64_t due_ns = saying.due_ns(); due_ns != 0 && now_ns >= due_ns) {
      told.push_back(Tell(&saying));
    }
  }
  return told;
}

std::string SameWords::Tell(Saying* saying) {
  const std::vector<uint32_t> more = std::exchange(saying->more, {});
  return "the same from " + std::to_string(more.size()) +
         (more.size() == 1 ? " more rank (" : " more ranks (") + Ranges(more) +
         "): " + saying->words;
}

}  // namespace ferry::tools
