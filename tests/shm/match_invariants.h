// The invariants of every match table.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "shm/layout/match_layout.h"
#include "shm/match_table.h"
#include "tests/shm/match_session.h"

namespace ferry::shm {

// Walks every chain of a table and finds violations.
class InvariantCheck {
 public:
  explicit InvariantCheck(const TestSession& session)
      : table_(*session.match()), entries_(session.entries()), visits_(table_.capacity) {}

  testing::AssertionResult Run() {
    WalkBuckets(table_.posted, 0, MatchState::kPosted);
    for (uint32_t kind = 0; kind < kPatternKinds; ++kind) {
      WalkBuckets(table_.unexpected[kind], kind, MatchState::kUnexpected);
    }
    const uint32_t free_entries = WalkFree();
    CheckEntries(free_entries);
    return problem_.empty() ? testing::AssertionSuccess() : testing::AssertionFailure() << problem_;
  }

 private:
  using Key = std::tuple<uint32_t, int32_t, int32_t>;

  void Expect(bool holds, const std::string& problem) {
    if (!holds && problem_.empty()) {
      problem_ = problem;
    }
  }

  void WalkBuckets(const MatchBucket* buckets, uint32_t chain, MatchState state) {
    std::map<Key, uint32_t> bucket_of_key;
    for (uint32_t bucket = 0; bucket < kMatchBuckets; ++bucket) {
      uint32_t previous = 0;
      uint32_t steps = 0;
      for (uint32_t i = buckets[bucket].first; i != 0; i = entries_[i].next[chain]) {
        const std::string where = "entry " + std::to_string(i) + ", chain " + std::to_string(chain);
        if (i >= table_.fresh || ++steps > table_.capacity) {
          return Expect(false, where + ": index out of range or cycle");
        }
        const MatchEntry& entry = entries_[i];
        Expect(entry.state == static_cast<uint32_t>(state), where + ": wrong state");
        Expect(entry.previous[chain] == previous, where + ": previous is wrong");
        Expect(previous == 0 || entries_[previous].sequence < entry.sequence, where + ": order");
        const bool posted = state == MatchState::kPosted;
        const Key key = {entry.context, !posted && (chain & 1) != 0 ? kAnySource : entry.source,
                         !posted && (chain & 2) != 0 ? kAnyTag : entry.tag};
        Expect(bucket_of_key.emplace(key, bucket).first->second == bucket,
               where + ": one key in two buckets");
        ++visits_[i][chain];
        previous = i;
      }
      if (buckets[bucket].last != previous) {
        Expect(false, "bucket " + std::to_string(bucket) + ": wrong last");
      }
    }
  }

  uint32_t WalkFree() {
    std::set<uint32_t> met;
    for (uint32_t i = table_.free_first; i != 0; i = entries_[i].next[0]) {
      if (i >= table_.fresh || !met.insert(i).second) {
        Expect(false, "pool: index out of range or cycle at entry " + std::to_string(i));
        break;
      }
      Expect(entries_[i].state == static_cast<uint32_t>(MatchState::kFree),
             "pool: entry " + std::to_string(i) + " is in use");
    }
    return static_cast<uint32_t>(met.size());
  }

  void CheckEntries(uint32_t free_entries) {
    constexpr std::array<int, kPatternKinds> kInNone = {0, 0, 0, 0};
    constexpr std::array<int, kPatternKinds> kInOne = {1, 0, 0, 0};
    constexpr std::array<int, kPatternKinds> kInAll = {1, 1, 1, 1};
    uint32_t counts[3] = {0, 0, 0};
    uint32_t kind_counts[kPatternKinds] = {0, 0, 0, 0};
    for (uint32_t i = 1; i < table_.fresh; ++i) {
      const MatchEntry& entry = entries_[i];
      const auto state = static_cast<MatchState>(entry.state);
      ++counts[entry.state % 3];
      Expect(visits_[i] == (state == MatchState::kPosted       ? kInOne
                            : state == MatchState::kUnexpected ? kInAll
                                                               : kInNone),
             "entry " + std::to_string(i) + " is not in exactly its chains");
      Expect(state == MatchState::kFree || entry.sequence < table_.next_sequence,
             "sequence reused");
      if (state == MatchState::kPosted) {
        ++kind_counts[(entry.source == kAnySource ? 1 : 0) + (entry.tag == kAnyTag ? 2 : 0)];
      }
    }
    Expect(table_.fresh >= 1 && table_.fresh <= table_.capacity, "fresh is out of range");
    Expect(counts[0] == free_entries, "free entries are missing from the pool");
    Expect(counts[1] == table_.posted_count, "posted_count is wrong");
    Expect(counts[2] == table_.unexpected_count, "unexpected_count is wrong");
    Expect(std::equal(kind_counts, kind_counts + kPatternKinds, table_.posted_kind_count),
           "posted_kind_count is wrong");
  }

  const MatchTableLayout& table_;
  const MatchEntry* entries_;
  std::vector<std::array<int, kPatternKinds>> visits_;
  std::string problem_;
};

inline testing::AssertionResult CheckInvariants(const TestSession& session) {
  return InvariantCheck(session).Run();
}

}  // namespace ferry::shm
