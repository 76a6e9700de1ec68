// The match table beside a linear list, which is what most MPI libraries search, at several depths
// of posted receives that do not match.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <list>

#include "benchmarks/micro/segment_memory.h"
#include "shm/match_table.h"

namespace ferry::shm {
namespace {

constexpr uint32_t kCapacity = 16384;
constexpr uint64_t kMatchOffset = 4096;
constexpr int32_t kTag = 1 << 20;

class Table {
 public:
  Table() {
    auto* layout = memory_.At<MatchTableLayout>(kMatchOffset);
    MatchTable::Initialize(layout, kCapacity);
    table_ = MatchTable(layout, &journal_);
  }

  void Post(const Envelope& envelope) {
    table_.Post(envelope, 1);
    journal_.Commit();
  }
  bool Match(const Envelope& envelope) {
    const uint32_t entry = table_.FindPosted(envelope);
    if (entry == 0) {
      return false;
    }
    table_.Remove(entry);
    journal_.Commit();
    return true;
  }

 private:
  SegmentMemory memory_{kMatchOffset + sizeof(MatchTableLayout) + kCapacity * sizeof(MatchEntry)};
  SegmentMemory inbox_{4096};
  Journal journal_{memory_.At<JournalLayout>(0), memory_.base(), memory_.size_bytes(),
                   inbox_.base(), inbox_.size_bytes()};
  MatchTable table_;
};

class List {
 public:
  void Post(const Envelope& envelope) { posted_.push_back(envelope); }
  bool Match(const Envelope& envelope) {
    const auto found = std::find_if(posted_.begin(), posted_.end(), [&](const Envelope& posted) {
      return posted.context == envelope.context &&
             (posted.source == kAnySource || posted.source == envelope.source) &&
             (posted.tag == kAnyTag || posted.tag == envelope.tag);
    });
    if (found == posted_.end()) {
      return false;
    }
    posted_.erase(found);
    return true;
  }

 private:
  std::list<Envelope> posted_;
};

template <typename Queue>
void PostAndMatch(benchmark::State& state) {
  Queue queue;
  for (int32_t tag = 0; tag < state.range(0); ++tag) {
    queue.Post({0, 1, tag});
  }
  for ([[maybe_unused]] auto _ : state) {
    queue.Post({0, 1, kTag});
    if (!queue.Match({0, 1, kTag})) {
      state.SkipWithError("no match");
      break;
    }
  }
}
BENCHMARK(PostAndMatch<Table>)->Arg(0)->Arg(100)->Arg(10000);
BENCHMARK(PostAndMatch<List>)->Arg(0)->Arg(100)->Arg(10000);

}  // namespace
}  // namespace ferry::shm
