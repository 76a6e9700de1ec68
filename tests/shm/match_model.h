// MPI matching written down the simple way, and operations that run on it and on a match table.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <list>
#include <map>
#include <ostream>
#include <random>
#include <utility>
#include <vector>

#include "shm/journal.h"
#include "shm/layout/match_layout.h"
#include "shm/match_table.h"
#include "tests/shm/match_session.h"

namespace ferry::shm {

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

// The contents of the table, in order, read without any of its chains.
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
