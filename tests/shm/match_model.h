// What the match table's tests share: a session segment to play with, MPI matching written down the
// simple way, operations that run on both, and a check of everything that must hold in a table.
#pragma once

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <list>
#include <map>
#include <ostream>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "shm/journal.h"
#include "shm/layout/lease_layout.h"
#include "shm/layout/match_layout.h"
#include "shm/match_table.h"

namespace ferry::shm {

// An inbox of one page and a session segment {lease, journal, match table}, in a memfd mapped
// shared, with an inaccessible page behind. A copy lies at another address.
class TestSession {
 public:
  explicit TestSession(uint32_t capacity)
      : session_bytes_(kMatchOffset + sizeof(MatchTableLayout) + capacity * sizeof(MatchEntry)) {
    const uint64_t mapped = RoundUp(kPage + session_bytes_);
    const int fd = memfd_create("match_test", MFD_CLOEXEC);
    void* const reserved =
        mmap(nullptr, mapped + kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (fd < 0 || ftruncate(fd, static_cast<off_t>(mapped)) != 0 ||
        mmap(reserved, mapped, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) != reserved) {
      std::perror("TestSession");
      std::abort();
    }
    close(fd);
    base_ = static_cast<std::byte*>(reserved);
    MatchTable::Initialize(match(), capacity);
  }
  TestSession(const TestSession& other) : TestSession(other.match()->capacity) { CopyFrom(other); }
  TestSession& operator=(const TestSession&) = delete;
  ~TestSession() { munmap(base_, RoundUp(kPage + session_bytes_) + kPage); }

  // `other` has the same capacity.
  void CopyFrom(const TestSession& other) {
    std::memcpy(base_, other.base_, kPage + session_bytes_);
  }
  bool SameBytes(const TestSession& other) const {
    return std::memcmp(base_, other.base_, kPage + session_bytes_) == 0;
  }

  std::byte* inbox() const { return base_; }
  std::byte* session() const { return base_ + kPage; }
  uint64_t session_bytes() const { return session_bytes_; }
  LeaseLayout* lease() const { return reinterpret_cast<LeaseLayout*>(session()); }
  JournalLayout* journal() const {
    return reinterpret_cast<JournalLayout*>(session() + kJournalOffset);
  }
  MatchTableLayout* match() const {
    return reinterpret_cast<MatchTableLayout*>(session() + kMatchOffset);
  }
  MatchEntry* entries() const { return reinterpret_cast<MatchEntry*>(match() + 1); }
  // Words of the caller that change in the same transactions: how many operations were done.
  uint64_t* operations() const { return reinterpret_cast<uint64_t*>(inbox()); }

  Journal MakeJournal() const {
    return Journal(journal(), session(), session_bytes_, inbox(), kPage);
  }

 private:
  static constexpr uint64_t kPage = 4096;
  static constexpr uint64_t kJournalOffset = 256;
  static constexpr uint64_t kMatchOffset = 4096;
  static uint64_t RoundUp(uint64_t size_bytes) { return (size_bytes + kPage - 1) & ~(kPage - 1); }

  std::byte* base_ = nullptr;
  uint64_t session_bytes_;
};

// A posted receive or an unexpected message; `id` tells it from all others.
struct ModelEntry {
  uint32_t context;
  int32_t source;
  int32_t tag;
  uint32_t id;

  bool operator==(const ModelEntry&) const = default;
  friend std::ostream& operator<<(std::ostream& out, const ModelEntry& entry) {
    return out << "#" << entry.id << "(" << entry.context << "," << entry.source << "," << entry.tag
               << ")";
  }
};

enum class OperationKind { kReceive, kArrive, kCancel, kProbe };

// kCancel takes back the posted receive `id`.
struct Operation {
  OperationKind kind;
  Envelope envelope;
  uint32_t id;
};

// `id`: the other side of the match, or what was cancelled; 0 = none.
struct Outcome {
  uint32_t id = 0;
  bool refused = false;  // the pool was used up

  bool operator==(const Outcome&) const = default;
};

// MPI 5.0, section 3.5, with two lists.
struct MatchModel {
  uint32_t capacity;
  std::list<ModelEntry> posted = {};
  std::list<ModelEntry> unexpected = {};

  bool operator==(const MatchModel&) const = default;

  static bool Matches(const Envelope& pattern, const Envelope& message) {
    return pattern.context == message.context &&
           (pattern.source == kAnySource || pattern.source == message.source) &&
           (pattern.tag == kAnyTag || pattern.tag == message.tag);
  }

  Outcome Apply(const Operation& operation) {
    const Envelope& envelope = operation.envelope;
    const ModelEntry entry = {envelope.context, envelope.source, envelope.tag, operation.id};
    const auto is_awaited = [&](const ModelEntry& message) {
      return Matches(envelope, {message.context, message.source, message.tag});
    };
    const auto is_receiver = [&](const ModelEntry& receive) {
      return Matches({receive.context, receive.source, receive.tag}, envelope);
    };
    const auto is_cancelled = [&](const ModelEntry& receive) { return receive.id == operation.id; };
    switch (operation.kind) {
      case OperationKind::kReceive:
        return TakeOrAdd(&unexpected, is_awaited, &posted, entry);
      case OperationKind::kArrive:
        return TakeOrAdd(&posted, is_receiver, &unexpected, entry);
      case OperationKind::kCancel:
        return {Take(&posted, is_cancelled), false};
      case OperationKind::kProbe: {
        const auto found = std::find_if(unexpected.begin(), unexpected.end(), is_awaited);
        return {found == unexpected.end() ? 0 : found->id, false};
      }
    }
    return {};
  }

 private:
  template <typename Predicate>
  static uint32_t Take(std::list<ModelEntry>* list, Predicate matches) {
    const auto found = std::find_if(list->begin(), list->end(), matches);
    if (found == list->end()) {
      return 0;
    }
    const uint32_t id = found->id;
    list->erase(found);
    return id;
  }

  template <typename Predicate>
  Outcome TakeOrAdd(std::list<ModelEntry>* from, Predicate matches, std::list<ModelEntry>* to,
                    const ModelEntry& entry) {
    if (const uint32_t id = Take(from, matches); id != 0) {
      return {id, false};
    }
    if (posted.size() + unexpected.size() + 1 == capacity) {
      return {0, true};
    }
    to->push_back(entry);
    return {};
  }
};

// A descriptor all of whose fields follow from `id`.
inline Descriptor MakeDescriptor(const Envelope& envelope, uint32_t id) {
  Descriptor descriptor{};
  descriptor.kind = static_cast<uint8_t>(DescriptorKind::kEager);
  descriptor.flags = static_cast<uint8_t>(id * 5);
  descriptor.cell = static_cast<uint16_t>(id * 3);
  descriptor.source = static_cast<uint32_t>(envelope.source);
  descriptor.context = envelope.context;
  descriptor.tag = envelope.tag;
  descriptor.size_bytes = uint64_t{id} << 20;
  for (uint32_t i = 0; i < kInlineBytes; i += sizeof(id)) {
    const uint32_t word = id + i;
    std::memcpy(descriptor.payload + i, &word, sizeof(word));
  }
  return descriptor;
}

inline uint32_t UnexpectedId(const MatchEntry& entry) {
  uint32_t id = 0;
  std::memcpy(&id, entry.payload, sizeof(id));
  return id;
}

inline bool CarriesDescriptor(const MatchEntry& entry) {
  const uint32_t id = UnexpectedId(entry);
  const Descriptor expected = MakeDescriptor({entry.context, entry.source, entry.tag}, id);
  return entry.lane == id % 7 && entry.kind == expected.kind && entry.flags == expected.flags &&
         entry.cell == expected.cell && entry.size_bytes == expected.size_bytes &&
         std::memcmp(entry.payload, expected.payload, sizeof(entry.payload)) == 0;
}

// Runs the operation on the table and leaves the transaction open, one store of the caller
// included.
inline Outcome Prepare(const TestSession& session, Journal* journal, MatchTable* table,
                       const Operation& operation) {
  Outcome outcome;
  switch (operation.kind) {
    case OperationKind::kReceive:
      if (const uint32_t found = table->FindUnexpected(operation.envelope); found != 0) {
        outcome.id = UnexpectedId(table->Entry(found));
        table->Remove(found);
      } else {
        outcome.refused = table->Post(operation.envelope, operation.id) == 0;
      }
      break;
    case OperationKind::kArrive:
      if (const uint32_t found = table->FindPosted(operation.envelope); found != 0) {
        outcome.id = table->Entry(found).request;
        table->Remove(found);
      } else {
        outcome.refused = table->AddUnexpected(MakeDescriptor(operation.envelope, operation.id),
                                               operation.id % 7) == 0;
      }
      break;
    case OperationKind::kCancel:
      for (uint32_t entry = table->NextPostedFrom(operation.envelope.source, 0); entry != 0;
           entry = table->NextPostedFrom(operation.envelope.source, entry + 1)) {
        if (table->Entry(entry).request == operation.id) {
          outcome.id = operation.id;
          table->Remove(entry);
          break;
        }
      }
      break;
    case OperationKind::kProbe:
      outcome.id = UnexpectedId(table->Entry(table->FindUnexpected(operation.envelope)));
      break;
  }
  journal->Set(session.operations(), *session.operations() + 1);
  return outcome;
}

// Random operations over few keys, so that wildcards, collisions and used-up pools all meet.
class OperationSource {
 public:
  explicit OperationSource(uint64_t seed) : random_(seed) {}

  Operation Next(const MatchModel& model) {
    const uint32_t choice = Below(16);
    if (choice == 0 && !model.posted.empty()) {
      auto cancelled = model.posted.begin();
      std::advance(cancelled, Below(static_cast<uint32_t>(model.posted.size())));
      return {OperationKind::kCancel,
              {cancelled->context, cancelled->source, cancelled->tag},
              cancelled->id};
    }
    Envelope envelope = keys_.empty() ? Envelope{Below(2), static_cast<int32_t>(Below(3)),
                                                 static_cast<int32_t>(Below(3))}
                                      : keys_[Below(static_cast<uint32_t>(keys_.size()))];
    // Long runs of one sort fill and drain the pool.
    if (Below(50) == 0) {
      bias_ = 3 + Below(10);
    }
    const bool arrive = choice < bias_;
    if (!arrive) {
      envelope.source = Below(3) == 0 ? kAnySource : envelope.source;
      envelope.tag = Below(3) == 0 ? kAnyTag : envelope.tag;
    }
    return {arrive         ? OperationKind::kArrive
            : choice == 15 ? OperationKind::kProbe
                           : OperationKind::kReceive,
            envelope, ++last_id_};
  }

  // Exact keys are taken from `keys` from now on.
  void UseKeys(std::vector<Envelope> keys) { keys_ = std::move(keys); }
  uint32_t Below(uint32_t limit) { return static_cast<uint32_t>(random_() % limit); }

 private:
  std::mt19937_64 random_;
  std::vector<Envelope> keys_;
  uint32_t bias_ = 8;
  uint32_t last_id_ = 0;
};

// What the table holds, in order, read without any of its chains.
inline MatchModel Contents(const TestSession& session) {
  const MatchTableLayout& table = *session.match();
  std::map<uint64_t, const MatchEntry*> by_sequence;
  for (uint32_t i = 1; i < std::min(table.fresh, table.capacity); ++i) {
    if (session.entries()[i].state != static_cast<uint32_t>(MatchState::kFree)) {
      by_sequence[session.entries()[i].sequence] = &session.entries()[i];
    }
  }
  MatchModel contents{table.capacity};
  for (const auto& [sequence, entry] : by_sequence) {
    const bool posted = entry->state == static_cast<uint32_t>(MatchState::kPosted);
    auto& list = posted ? contents.posted : contents.unexpected;
    list.push_back({entry->context, entry->source, entry->tag,
                    posted ? entry->request : UnexpectedId(*entry)});
    EXPECT_TRUE(posted || CarriesDescriptor(*entry)) << "damaged message " << list.back();
  }
  return contents;
}

// Walks every chain of a table and finds what must not be.
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

// `count` exact keys of context 0 whose posted receives share one bucket.
inline std::vector<Envelope> CollidingKeys(size_t count) {
  std::map<uint32_t, std::vector<Envelope>> by_bucket;
  for (int32_t tag = 0;; ++tag) {
    const TestSession session(2);
    Journal journal = session.MakeJournal();
    MatchTable table(session.match(), &journal);
    const Envelope key = {0, tag % 5, tag};
    table.Post(key, 1);
    journal.Commit();
    uint32_t bucket = 0;
    while (session.match()->posted[bucket].first == 0) {
      ++bucket;
    }
    by_bucket[bucket].push_back(key);
    if (by_bucket[bucket].size() == count) {
      return by_bucket[bucket];
    }
  }
}

}  // namespace ferry::shm
