// Measures what a message between nodes pays to find that its memory is registered: lookup, use and
// the end of the use, at several numbers of registrations, in the order of a stride that no cache
// foresees. Beside it an ordered map from beginnings to ends, as registration caches are often
// made.
#include <benchmark/benchmark.h>

#include <iterator>
#include <list>
#include <map>
#include <memory>
#include <vector>

#include "internode/registration/registration_cache.h"

namespace ferry::daemon {
namespace {

constexpr uintptr_t kBase = 0x7f00'0000'0000;
constexpr uintptr_t kPiece = 64 << 20;
constexpr progress::MemoryIdentity kMemory{1, 0};
constexpr uint64_t kStride = 7919;  // a prime

uintptr_t PlaceOf(uint64_t number) { return kBase + number * kPiece; }

class RegistrationTable {
 public:
  explicit RegistrationTable(uint64_t entries) {
    for (uint64_t i = 0; i < entries; ++i) {
      cache_.SetReady(cache_.Insert(PlaceOf(i), PlaceOf(i + 1), kMemory));
    }
  }
  bool Hit(uintptr_t begin, uintptr_t end) {
    progress::RegistrationCache::Entry* entry = cache_.Find(begin, end, kMemory);
    if (entry == nullptr) {
      return false;
    }
    cache_.Count(true);
    cache_.Use(entry, progress::UseFor::kPeer);
    benchmark::DoNotOptimize(entry->begin);
    cache_.Unuse(entry, progress::UseFor::kPeer);
    return true;
  }

 private:
  progress::RegistrationCache cache_{{}};
};

class OrderedMap {
 public:
  explicit OrderedMap(uint64_t entries) {
    for (uint64_t i = 0; i < entries; ++i) {
      Entry& entry = entries_[PlaceOf(i)];
      entry.end = PlaceOf(i + 1);
      entry.oldest = oldest_.insert(oldest_.end(), &entry);
    }
  }
  bool Hit(uintptr_t begin, uintptr_t end) {
    const auto behind = entries_.upper_bound(begin);
    if (behind == entries_.begin() || std::prev(behind)->second.end < end) {
      return false;
    }
    Entry& entry = std::prev(behind)->second;
    benchmark::DoNotOptimize(entry.key);
    oldest_.splice(oldest_.end(), oldest_, entry.oldest);
    return true;
  }

 private:
  struct Entry {
    uintptr_t end = 0;
    uint64_t key = 0;
    std::list<Entry*>::iterator oldest;
  };
  std::map<uintptr_t, Entry> entries_;
  std::list<Entry*> oldest_;
};

template <typename Cache>
void BM_RegistrationHit(benchmark::State& state) {
  const auto entries = static_cast<uint64_t>(state.range(0));
  const auto cache = std::make_unique<Cache>(entries);
  uint64_t next = 0;
  for (auto step : state) {
    (void)step;
    next = (next + kStride) % entries;
    if (!cache->Hit(PlaceOf(next) + 4096, PlaceOf(next) + 8192)) {
      state.SkipWithError("a miss");
      return;
    }
  }
}
BENCHMARK(BM_RegistrationHit<RegistrationTable>)->Arg(1)->Arg(100)->Arg(10000);
BENCHMARK(BM_RegistrationHit<OrderedMap>)->Arg(1)->Arg(100)->Arg(10000);

}  // namespace
}  // namespace ferry::daemon
