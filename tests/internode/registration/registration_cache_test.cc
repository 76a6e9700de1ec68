#include "internode/registration/registration_cache.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <random>
#include <vector>

#include "internode/registration/registrar.h"

namespace ferry::daemon {
namespace {

using Entry = progress::RegistrationCache::Entry;

constexpr progress::MemoryIdentity kOne{1, 0};
constexpr progress::MemoryIdentity kTwo{2, 0};

class RegistrationCacheTest : public testing::Test {
 protected:
  Entry* Add(progress::RegistrationCache& cache, uintptr_t begin, uintptr_t end,
             const progress::MemoryIdentity& identity = kOne) {
    Entry* entry = cache.Insert(begin, end, identity);
    cache.SetReady(entry);
    return entry;
  }
  // Evicts until `bytes` more fit; returns where the evicted entries began.
  std::vector<uintptr_t> MakeRoom(progress::RegistrationCache& cache, uint64_t bytes,
                                  uint64_t now_ns = 0) {
    std::vector<uintptr_t> gone;
    has_room_ = cache.MakeRoom(bytes, now_ns, [&](const Entry& entry) {
      gone.push_back(entry.begin);
      return true;
    });
    return gone;
  }
  static progress::RegistrationStatistics Statistics(const progress::RegistrationCache& cache) {
    progress::RegistrationStatistics statistics;
    cache.FillStatistics(&statistics);
    return statistics;
  }

  progress::RegistrationCache cache_{{}};
  bool has_room_ = false;
};

TEST_F(RegistrationCacheTest, FindsWhatCoversTheWholeRange) {
  Entry* entry = Add(cache_, 100, 200);
  EXPECT_EQ(cache_.Find(100, 200, kOne), entry);
  EXPECT_EQ(cache_.Find(150, 151, kOne), entry);
  EXPECT_EQ(cache_.Find(99, 150, kOne), nullptr);
  EXPECT_EQ(cache_.Find(150, 201, kOne), nullptr);
  EXPECT_EQ(cache_.Find(200, 201, kOne), nullptr);
}

TEST_F(RegistrationCacheTest, FindsTheRightOneOfThoseThatOverlap) {
  Entry* first = Add(cache_, 100, 200);
  Entry* second = Add(cache_, 150, 250);
  Entry* third = Add(cache_, 240, 300);
  EXPECT_EQ(cache_.Find(120, 200, kOne), first);
  EXPECT_EQ(cache_.Find(160, 210, kOne), second);
  EXPECT_EQ(cache_.Find(245, 250, kOne), third);
  EXPECT_EQ(cache_.Find(120, 210, kOne), nullptr);
}

TEST_F(RegistrationCacheTest, WhatLiesWithinANewOneCannotBeFoundAnyMore) {
  Entry* within = Add(cache_, 150, 160);
  Entry* before = Add(cache_, 90, 110);
  Entry* wide = Add(cache_, 100, 200);
  EXPECT_EQ(cache_.Find(150, 160, kOne), wide);
  EXPECT_EQ(cache_.Find(90, 100, kOne), before);
  EXPECT_FALSE(within->listed);
  EXPECT_EQ(cache_.entries(), 3U);  // until it is erased
  std::vector<Entry*> unlisted;
  cache_.ForEachUnlisted([&](Entry& entry) { unlisted.push_back(&entry); });
  EXPECT_EQ(unlisted, std::vector<Entry*>{within});
  cache_.Erase(within);
  EXPECT_EQ(cache_.bytes(), 120U);
}

TEST_F(RegistrationCacheTest, OtherMemoryAtTheSameAddressIsNeverFound) {
  Add(cache_, 100, 200);
  EXPECT_EQ(cache_.Find(100, 200, kTwo), nullptr);
  EXPECT_EQ(Statistics(cache_).stale, 1U);
  EXPECT_EQ(cache_.Find(100, 200, kOne), nullptr);  // nor found again
  EXPECT_TRUE(cache_.any_unlisted());
}

TEST_F(RegistrationCacheTest, AnotherAllocationOfTheSameRegionIsOtherMemory) {
  const progress::MemoryIdentity before{7, 1001};
  const progress::MemoryIdentity after{7, 1002};
  Add(cache_, 100, 200, before);
  EXPECT_EQ(cache_.Find(120, 130, after), nullptr);
  Entry* entry = Add(cache_, 100, 200, after);
  EXPECT_EQ(cache_.Find(120, 130, after), entry);
  EXPECT_EQ(cache_.Find(120, 130, before), nullptr);
}

TEST_F(RegistrationCacheTest, WhatANewOneOverlapsOfOtherMemoryIsStale) {
  Entry* old = Add(cache_, 100, 200);
  Entry* entry = Add(cache_, 150, 250, kTwo);
  EXPECT_FALSE(old->listed);
  EXPECT_EQ(cache_.Find(150, 250, kTwo), entry);
  EXPECT_EQ(Statistics(cache_).stale, 1U);
}

TEST_F(RegistrationCacheTest, ForgetsARegionAndNothingElse) {
  Add(cache_, 100, 200);
  Add(cache_, 150, 250);
  Entry* other = Add(cache_, 300, 400, kTwo);
  cache_.UnlistAll(0, 1000, kOne);
  EXPECT_EQ(cache_.Find(100, 150, kOne), nullptr);
  EXPECT_EQ(cache_.Find(200, 250, kOne), nullptr);
  EXPECT_EQ(cache_.Find(300, 400, kTwo), other);
}

TEST_F(RegistrationCacheTest, TheOldestGoesFirstByItsLastUse) {
  progress::RegistrationCache cache({3, 0});
  Entry* first = Add(cache, 100, 200);
  Add(cache, 200, 300);
  Add(cache, 300, 400);
  cache.Use(first, progress::UseFor::kTransfer);
  cache.Unuse(first, progress::UseFor::kTransfer);
  EXPECT_EQ(MakeRoom(cache, 1), std::vector<uintptr_t>{200});
  EXPECT_TRUE(has_room_);
  EXPECT_EQ(Statistics(cache).evictions, 1U);
}

TEST_F(RegistrationCacheTest, AsManyGoAsTheBytesNeed) {
  progress::RegistrationCache cache({0, 300});
  Add(cache, 100, 200);
  Add(cache, 200, 300);
  Add(cache, 300, 400);
  EXPECT_FALSE(cache.HasRoom(1));
  EXPECT_EQ(MakeRoom(cache, 150), (std::vector<uintptr_t>{100, 200}));
  EXPECT_TRUE(has_room_);
  EXPECT_FALSE(cache.CanHold(301, progress::UseFor::kTransfer));
  EXPECT_TRUE(cache.CanHold(150, progress::UseFor::kPeer));
  EXPECT_FALSE(cache.CanHold(151, progress::UseFor::kPeer));
}

TEST_F(RegistrationCacheTest, NothingInUseGoes) {
  progress::RegistrationCache cache({3, 0});
  cache.Use(Add(cache, 100, 200), progress::UseFor::kTransfer);
  cache.Insert(200, 300, kOne);              // being pinned
  Add(cache, 300, 400)->not_before_ns = 10;  // another node may be reading it
  EXPECT_TRUE(MakeRoom(cache, 1, 9).empty());
  EXPECT_FALSE(has_room_);
  EXPECT_EQ(MakeRoom(cache, 1, 10), std::vector<uintptr_t>{300});
}

TEST_F(RegistrationCacheTest, WhatTheNicDoesNotLetGoOfStays) {
  progress::RegistrationCache cache({2, 0});
  Add(cache, 100, 200);
  Add(cache, 200, 300);
  EXPECT_TRUE(cache.MakeRoom(1, 0, [](const Entry& entry) { return entry.begin == 200; }));
  EXPECT_NE(cache.Find(100, 200, kOne), nullptr);
}

TEST_F(RegistrationCacheTest, AFailedOneCannotBeFound) {
  Entry* entry = cache_.Insert(100, 200, kOne);
  cache_.Use(entry, progress::UseFor::kTransfer);
  EXPECT_EQ(cache_.Find(100, 200, kOne), entry);
  cache_.SetFailed(entry, ErrorCode::kOutOfMemory);
  EXPECT_EQ(cache_.Find(100, 200, kOne), nullptr);
  EXPECT_EQ(entry->error, ErrorCode::kOutOfMemory);
  cache_.Unuse(entry, progress::UseFor::kTransfer);
  cache_.Erase(entry);
  EXPECT_EQ(cache_.entries(), 0U);
}

// ---- Anything ----------------------------------------------------------------------------------

// Random memory comes and goes at a few addresses, with and without notice to the cache, and is
// used at random. A model that knows everything checks it.
class RandomUse {
 public:
  explicit RandomUse(uint32_t seed)
      : random_(seed),
        limits_{Below(2) != 0 ? 1 + Below(12) : 0, Below(2) != 0 ? 16 + Below(80) : 0},
        cache_(limits_) {}

  void Run(int steps) {
    for (int step = 0; step < steps && !testing::Test::HasFatalFailure(); ++step) {
      Step();
      Check();
    }
  }

 private:
  static constexpr uintptr_t kAddresses = 64;

  struct Memory {  // now at [begin, end)
    uintptr_t begin, end;
    progress::MemoryIdentity identity;
  };
  struct Known {  // an entry of the model
    uintptr_t begin, end;
    progress::MemoryIdentity identity;
    bool findable = true;
    bool ready = false;
    uint32_t users = 0;
    uint64_t last_use = 0;
  };

  uint64_t Below(uint64_t bound) {
    return std::uniform_int_distribution<uint64_t>(0, bound - 1)(random_);
  }

  void Step() {
    switch (Below(8)) {
      case 0:
        return Map();
      case 1:
        return Unmap();
      case 2:
        return Reallocate();
      case 3:
        return EndPinning();
      case 4:
        return Drop();
      case 5:
        return EraseOne();
      default:
        return UseSome();
    }
  }

  void Map() {
    const uintptr_t begin = Below(kAddresses);
    const uintptr_t end = begin + 1 + Below(16);
    const bool free = std::none_of(memory_.begin(), memory_.end(), [&](const Memory& one) {
      return one.begin < end && begin < one.end;
    });
    if (free) {
      memory_.push_back({begin, end, {++last_region_, Below(3)}});
    }
  }
  void Unmap() {
    if (memory_.empty()) {
      return;
    }
    const size_t index = Below(memory_.size());
    const Memory gone = memory_[index];
    memory_.erase(memory_.begin() + static_cast<ptrdiff_t>(index));
    if (Below(3) == 0) {
      return;  // the cache is not told
    }
    cache_.UnlistAll(gone.begin, gone.end, gone.identity);
    for (auto& [entry, known] : known_) {
      known.findable &= known.identity.region != gone.identity.region;
    }
  }
  // Puts other memory at the same region and address, without telling the cache.
  void Reallocate() {
    if (!memory_.empty()) {
      memory_[Below(memory_.size())].identity.allocation = 3 + ++last_allocation_;
    }
  }

  void UseSome() {
    if (memory_.empty()) {
      return;
    }
    const Memory memory = memory_[Below(memory_.size())];
    const uintptr_t begin = memory.begin + Below(memory.end - memory.begin);
    const uintptr_t end = begin + 1 + Below(memory.end - begin);
    Entry* found = cache_.Find(begin, end, memory.identity);
    if (found != nullptr) {
      const Known& known = known_.at(found);
      ASSERT_EQ(known.identity, memory.identity) << "a stale hit";
      ASSERT_TRUE(known.begin <= begin && end <= known.end);
      ASSERT_TRUE(known.findable);
    } else {
      for (const auto& [entry, known] : known_) {
        ASSERT_FALSE(known.findable && known.identity == memory.identity && known.begin <= begin &&
                     end <= known.end)
            << "a missed hit";
      }
      NoteStale(memory.identity);
      if (!cache_.CanHold(end - begin, progress::UseFor::kTransfer) || !Evict(end - begin)) {
        return;
      }
      found = cache_.Insert(begin, end, memory.identity);
      for (auto& [entry, known] : known_) {
        known.findable &= !(begin <= known.begin && known.end <= end);
        known.findable &=
            known.identity == memory.identity || known.end <= begin || end <= known.begin;
      }
      known_[found] = {begin, end, memory.identity};
    }
    cache_.Use(found, progress::UseFor::kTransfer);
    ++known_.at(found).users;
  }
  // A lookup may have found out that its entry is stale.
  void NoteStale(const progress::MemoryIdentity& identity) {
    for (auto& [entry, known] : known_) {
      if (known.findable && !entry->listed) {
        ASSERT_NE(known.identity, identity);
        known.findable = false;
      }
    }
  }
  bool Evict(uint64_t bytes) {
    return cache_.MakeRoom(bytes, 0, [&](Entry& entry) {
      const auto victim = known_.find(&entry);
      EXPECT_TRUE(victim->second.findable && victim->second.ready && victim->second.users == 0);
      for (const auto& [other, known] : known_) {
        EXPECT_FALSE(known.findable && known.ready && known.users == 0 &&
                     known.last_use < victim->second.last_use)
            << "not the oldest";
      }
      known_.erase(victim);
      return true;
    });
  }

  std::optional<Entry*> Pick(bool (*suits)(const Known&)) {
    std::vector<Entry*> those;
    for (const auto& [entry, known] : known_) {
      if (suits(known)) {
        those.push_back(entry);
      }
    }
    return those.empty() ? std::nullopt : std::optional(those[Below(those.size())]);
  }
  void EndPinning() {
    if (const auto entry = Pick([](const Known& known) { return !known.ready; })) {
      cache_.SetReady(*entry);
      known_.at(*entry).ready = true;
      known_.at(*entry).last_use = ++time_;
    }
  }
  void Drop() {
    if (const auto entry = Pick([](const Known& known) { return known.users != 0; })) {
      cache_.Unuse(*entry, progress::UseFor::kTransfer);
      --known_.at(*entry).users;
      known_.at(*entry).last_use = ++time_;
    }
  }
  void EraseOne() {
    if (const auto entry =
            Pick([](const Known& known) { return known.ready && known.users == 0; })) {
      known_.erase(*entry);
      cache_.Erase(*entry);
    }
  }

  void Check() {
    uint64_t bytes = 0;
    for (const auto& [entry, known] : known_) {
      bytes += known.end - known.begin;
      ASSERT_EQ(entry->begin, known.begin);
      ASSERT_EQ(entry->end, known.end);
      ASSERT_EQ(entry->identity, known.identity);
      ASSERT_EQ(entry->users, known.users);
      ASSERT_EQ(entry->listed, known.findable);
    }
    ASSERT_EQ(cache_.entries(), known_.size());
    ASSERT_EQ(cache_.bytes(), bytes);
    ASSERT_TRUE(limits_.entries == 0 || known_.size() <= limits_.entries);
    ASSERT_TRUE(limits_.bytes == 0 || bytes <= limits_.bytes);
  }

  std::mt19937 random_;
  const progress::RegistrationCache::Limits limits_;
  progress::RegistrationCache cache_;
  std::vector<Memory> memory_;
  std::map<Entry*, Known> known_;
  uint64_t last_region_ = 0;
  uint64_t last_allocation_ = 0;
  uint64_t time_ = 0;
};

TEST(RegistrationCachePropertyTest, NeverFindsWhatIsNotThereAnyMore) {
  for (uint32_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    RandomUse(seed).Run(500);
    if (testing::Test::HasFatalFailure()) {
      return;
    }
  }
}

}  // namespace
}  // namespace ferry::daemon
