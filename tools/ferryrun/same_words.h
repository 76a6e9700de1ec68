// Shows words that many ranks say only once, immediately, and later how many more said so.
//
// Main thread; nothing blocks.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

namespace ferry::tools {

class SameWords {
 public:
  // A burst is over after kQuietNs without the words; nobody waits for that longer than
  // kPatienceNs.
  static constexpr uint64_t kQuietNs = 500'000'000;
  static constexpr uint64_t kPatienceNs = 10'000'000'000;

  // Whether the rank is the first that says so, or says it once more: its words are to be shown.
  bool IsNew(uint32_t rank, std::string_view words, uint64_t now_ns);

  // Filters bytes from a rank's standard error: drops the library's lines (common/library_words.h)
  // that are not new. Holds nothing back: a line that comes in pieces is left as it is.
  std::string Sift(uint32_t rank, std::string_view bytes, uint64_t now_ns);

  // When to call TakeDue; 0: all has been told.
  uint64_t deadline_ns() const;
  // Sentences that say how many more ranks said what. UINT64_MAX: all that are left.
  std::vector<std::string> TakeDue(uint64_t now_ns);

 private:
  struct Saying {
    std::string words;
    std::vector<bool> said_by;   // each once
    std::vector<uint32_t> more;  // those of them who were not shown and have not been told of
    uint64_t first_more_ns = 0;
    uint64_t last_more_ns = 0;
    uint64_t due_ns() const;  // 0: nothing to tell
  };
  static constexpr size_t kMostRemembered = 64;

  static std::string Tell(Saying* saying);

  std::deque<Saying> sayings_;     // the oldest first
  std::vector<std::string> told_;  // of sayings that are forgotten
  std::vector<bool> mid_line_;     // by rank
};

}  // namespace ferry::tools
