// Reads are plain: only the lease holder touches these words, and the lease orders one holder after
// another. Stores to what is in use go through the journal. A free entry is in no chain but the
// pool's, so all of it but `state` and `next[0]` may be stored at once: if the transaction never
// commits, the stores are never read.
#include "shm/match_table.h"

#include <algorithm>
#include <cstring>

#include "shm/atomic.h"

namespace ferry::shm {
namespace {

constexpr uint32_t kAnySourceBit = 1;
constexpr uint32_t kAnyTagBit = 2;
constexpr MatchEntry kNoEntry{};

// Which of the four chains a receive for this pattern looks at.
uint32_t PatternKind(int32_t source, int32_t tag) {
  return (source == kAnySource ? kAnySourceBit : 0) | (tag == kAnyTag ? kAnyTagBit : 0);
}

// The names that a receive of pattern kind `kind` must give to match this envelope.
Envelope Pattern(const Envelope& envelope, uint32_t kind) {
  return {envelope.context, (kind & kAnySourceBit) != 0 ? kAnySource : envelope.source,
          (kind & kAnyTagBit) != 0 ? kAnyTag : envelope.tag};
}

// Multiplicative hashing (Knuth, The Art of Computer Programming 3, 6.4) of the three words, folded
// once so that every bit of them reaches the ten upper ones that count.
uint32_t BucketOf(const Envelope& key) {
  static_assert(kMatchBuckets == 1 << 10);
  uint64_t mixed = uint64_t{key.context} << 32 | static_cast<uint32_t>(key.tag);
  mixed ^= static_cast<uint32_t>(key.source) * 0xD6E8'FEB8'6659'FD93U;
  mixed = (mixed ^ mixed >> 32) * 0x9E37'79B9'7F4A'7C15U;
  return static_cast<uint32_t>(mixed >> 54);
}

constexpr auto AnyEntry = [](const MatchEntry&) { return true; };

}  // namespace

MatchTable::MatchTable(MatchTableLayout* layout, Journal* journal)
    : layout_(layout),
      entries_(reinterpret_cast<MatchEntry*>(layout + 1)),
      journal_(journal),
      capacity_(layout->capacity) {
  if (!journal->Covers(layout, sizeof(*layout) + uint64_t{capacity_} * sizeof(MatchEntry))) {
    Corrupt({FaultKind::kMatchTable, 0, capacity_});
  }
}

void MatchTable::Initialize(MatchTableLayout* layout, uint32_t capacity) {
  layout->capacity = capacity;
  layout->fresh = 1;
}

// The first entry of the chain with this key that `accept` takes. Chain k > 0 holds messages by the
// k-th pattern kind: what that kind leaves open is not compared. A posted entry's wildcards, in
// chain 0, are plain values. Links are loaded once each: the session's other threads, if faulty,
// write to them too.
template <typename Accept>
uint32_t MatchTable::FindInChain(const MatchBucket& bucket, uint32_t chain, MatchState state,
                                 const Envelope& key, Accept&& accept) {
  uint32_t steps_left = capacity_;
  for (uint32_t index = LoadRelaxed(bucket.first); index != 0;
       index = LoadRelaxed(entries_[index].next[chain])) {
    if (!IsIndex(index)) {
      return CorruptIndex(index);
    }
    const MatchEntry& entry = entries_[index];
    if (entry.state != static_cast<uint32_t>(state)) {
      return CorruptState(index);
    }
    if (steps_left-- == 0) {
      return Corrupt({FaultKind::kMatchCycle, index, 0});
    }
    ++traversal_steps_;
    if (entry.context == key.context &&
        ((chain & kAnySourceBit) != 0 || entry.source == key.source) &&
        ((chain & kAnyTagBit) != 0 || entry.tag == key.tag) && accept(entry)) {
      return index;
    }
  }
  return 0;
}

uint32_t MatchTable::FindUnexpected(const Envelope& pattern) {
  if (layout_->unexpected_count == 0) {
    return 0;
  }
  const uint32_t kind = PatternKind(pattern.source, pattern.tag);
  return FindInChain(layout_->unexpected[kind][BucketOf(pattern)], kind, MatchState::kUnexpected,
                     pattern, AnyEntry);
}

uint32_t MatchTable::FindRts(const Envelope& envelope, uint32_t lane, uint64_t key) {
  if (layout_->unexpected_count == 0) {
    return 0;
  }
  return FindInChain(layout_->unexpected[0][BucketOf(envelope)], 0, MatchState::kUnexpected,
                     envelope, [lane, key](const MatchEntry& entry) {
                       RemoteRts rts;
                       std::memcpy(&rts, entry.payload, sizeof(rts));
                       return entry.kind == static_cast<uint8_t>(DescriptorKind::kRemoteRts) &&
                              entry.lane == lane && rts.key == key;
                     });
}

uint32_t MatchTable::FindPosted(const Envelope& envelope) {
  uint32_t earliest = 0;
  for (uint32_t kind = 0; kind < kPatternKinds; ++kind) {
    if (layout_->posted_kind_count[kind] == 0) {
      continue;
    }
    const Envelope pattern = Pattern(envelope, kind);
    const uint32_t found =
        FindInChain(layout_->posted[BucketOf(pattern)], 0, MatchState::kPosted, pattern, AnyEntry);
    if (found != 0 && (earliest == 0 || entries_[found].sequence < entries_[earliest].sequence)) {
      earliest = found;
    }
  }
  return IsIndex(earliest) ? earliest : 0;  // not if a later chain turned out corrupt
}

uint32_t MatchTable::Post(const Envelope& pattern, uint32_t request) {
  MatchBucket* const bucket = &layout_->posted[BucketOf(pattern)];
  const Taken taken = Take();
  if (taken.entry == 0 || !CanAppend(*bucket)) {
    return 0;
  }
  MatchEntry& entry = entries_[taken.entry];
  entry.context = pattern.context;
  entry.source = pattern.source;
  entry.tag = pattern.tag;
  entry.sequence = layout_->next_sequence;
  entry.request = request;

  SetTaken(taken, MatchState::kPosted);
  Append(bucket, 0, taken.entry);
  uint32_t* const kind_count =
      &layout_->posted_kind_count[PatternKind(pattern.source, pattern.tag)];
  journal_->Set(kind_count, *kind_count + 1);
  journal_->Set(&layout_->posted_count, layout_->posted_count + 1);
  return taken.entry;
}

uint32_t MatchTable::AddUnexpected(const Descriptor& descriptor, uint32_t lane) {
  const Envelope envelope = {descriptor.context, static_cast<int32_t>(descriptor.source),
                             descriptor.tag};
  const Taken taken = Take();
  if (taken.entry == 0) {
    return 0;
  }
  MatchBucket* buckets[kPatternKinds];
  for (uint32_t kind = 0; kind < kPatternKinds; ++kind) {
    buckets[kind] = &layout_->unexpected[kind][BucketOf(Pattern(envelope, kind))];
    if (!CanAppend(*buckets[kind])) {
      return 0;
    }
  }
  MatchEntry& entry = entries_[taken.entry];
  entry.context = envelope.context;
  entry.source = envelope.source;
  entry.tag = envelope.tag;
  entry.sequence = layout_->next_sequence;
  entry.lane = lane;
  entry.size_bytes = descriptor.size_bytes;
  entry.kind = descriptor.kind;
  entry.flags = descriptor.flags;
  entry.cell = descriptor.cell;
  entry.reserved = 0;
  std::memcpy(entry.payload, descriptor.payload, sizeof(entry.payload));

  SetTaken(taken, MatchState::kUnexpected);
  for (uint32_t kind = 0; kind < kPatternKinds; ++kind) {
    Append(buckets[kind], kind, taken.entry);
  }
  journal_->Set(&layout_->unexpected_count, layout_->unexpected_count + 1);
  return taken.entry;
}

void MatchTable::Remove(uint32_t index) {
  const MatchEntry& entry = Entry(index);
  const bool posted = entry.state == static_cast<uint32_t>(MatchState::kPosted);
  const bool unexpected = entry.state == static_cast<uint32_t>(MatchState::kUnexpected);
  const uint32_t chains = posted ? 1 : kPatternKinds;
  if (!posted && !unexpected) {
    Corrupt({FaultKind::kMatchState, index, entry.state});
    return;
  }
  // Links that change after this look lead at worst out of the segments: the journal's to refuse.
  for (uint32_t chain = 0; chain < chains; ++chain) {
    for (const uint32_t link : {entry.next[chain], entry.previous[chain]}) {
      if (!IsIndex(link)) {
        CorruptIndex(link);
        return;
      }
    }
  }
  const Envelope envelope = {entry.context, entry.source, entry.tag};
  if (posted) {
    Unlink(&layout_->posted[BucketOf(envelope)], 0, index);
    uint32_t* const kind_count = &layout_->posted_kind_count[PatternKind(entry.source, entry.tag)];
    journal_->Set(kind_count, *kind_count - 1);
    journal_->Set(&layout_->posted_count, layout_->posted_count - 1);
  } else {
    for (uint32_t kind = 0; kind < kPatternKinds; ++kind) {
      Unlink(&layout_->unexpected[kind][BucketOf(Pattern(envelope, kind))], kind, index);
    }
    journal_->Set(&layout_->unexpected_count, layout_->unexpected_count - 1);
  }
  journal_->Set(&entries_[index].state, static_cast<uint32_t>(MatchState::kFree));
  journal_->Set(&entries_[index].next[0], layout_->free_first);
  journal_->Set(&layout_->free_first, index);
}

const MatchEntry& MatchTable::Entry(uint32_t entry) const {
  return IsIndex(entry) ? entries_[entry] : kNoEntry;
}

uint32_t MatchTable::NextPostedFrom(int32_t source, uint32_t from) {
  const uint32_t end = std::min(layout_->fresh, capacity_);
  for (uint32_t index = std::max(from, 1U); index < end; ++index) {
    const MatchEntry& entry = entries_[index];
    if (entry.state == static_cast<uint32_t>(MatchState::kPosted) &&
        (entry.source == source || entry.source == kAnySource)) {
      return index;
    }
  }
  return 0;
}

uint32_t MatchTable::NextRtsFrom(int32_t source, uint32_t lane, uint32_t from) const {
  const uint32_t end = std::min(layout_->fresh, capacity_);
  for (uint32_t index = std::max(from, 1U); index < end; ++index) {
    const MatchEntry& entry = entries_[index];
    if (entry.state == static_cast<uint32_t>(MatchState::kUnexpected) && entry.source == source &&
        entry.lane == lane && entry.kind == static_cast<uint8_t>(DescriptorKind::kRemoteRts) &&
        (entry.flags & kFlagLinkDown) == 0) {
      return index;
    }
  }
  return 0;
}

void MatchTable::LoseRtsFrom(int32_t source, uint32_t lane, uint8_t flags) {
  for (uint32_t entry = NextRtsFrom(source, lane, 0); entry != 0;
       entry = NextRtsFrom(source, lane, entry + 1)) {
    uint8_t& word = entries_[entry].flags;
    if ((word & flags) == flags) {
      StoreRelaxed(word, static_cast<uint8_t>(word | kFlagLinkDown));
    }
  }
}

// Chooses a free entry without taking it yet.
MatchTable::Taken MatchTable::Take() {
  constexpr Taken kNone = {0, 0, 0};
  const uint32_t fresh = LoadRelaxed(layout_->fresh);
  if (const uint32_t entry = LoadRelaxed(layout_->free_first); entry != 0) {
    const uint32_t next = IsIndex(entry) ? LoadRelaxed(entries_[entry].next[0]) : entry;
    if (!IsIndex(next)) {
      CorruptIndex(next);
      return kNone;
    }
    if (entries_[entry].state != static_cast<uint32_t>(MatchState::kFree)) {
      CorruptState(entry);
      return kNone;
    }
    return {entry, next, fresh};
  }
  if (fresh == 0) {
    CorruptIndex(fresh);
    return kNone;
  }
  return IsIndex(fresh) ? Taken{fresh, 0, fresh + 1} : kNone;
}

void MatchTable::SetTaken(const Taken& taken, MatchState state) {
  journal_->Set(&entries_[taken.entry].state, static_cast<uint32_t>(state));
  journal_->Set(&entries_[taken.entry].next[0], 0);
  if (taken.fresh != layout_->fresh) {
    journal_->Set(&layout_->fresh, taken.fresh);
  } else {
    journal_->Set(&layout_->free_first, taken.free_first);
  }
  journal_->Set(&layout_->next_sequence, layout_->next_sequence + 1);
}

bool MatchTable::CanAppend(const MatchBucket& bucket) {
  const uint32_t last = LoadRelaxed(bucket.last);
  if (!IsIndex(last)) {
    CorruptIndex(last);
    return false;
  }
  return true;
}

void MatchTable::Append(MatchBucket* bucket, uint32_t chain, uint32_t entry) {
  const uint32_t last = bucket->last;
  entries_[entry].previous[chain] = last;
  if (chain != 0) {
    entries_[entry].next[chain] = 0;  // next[0] is the pool's until the commit: SetTaken
  }
  if (last == 0) {
    journal_->Set(&bucket->first, entry);
  } else {
    journal_->Set(&entries_[last].next[chain], entry);
  }
  journal_->Set(&bucket->last, entry);
}

void MatchTable::Unlink(MatchBucket* bucket, uint32_t chain, uint32_t entry) {
  const uint32_t next = entries_[entry].next[chain];
  const uint32_t previous = entries_[entry].previous[chain];
  journal_->Set(previous == 0 ? &bucket->first : &entries_[previous].next[chain], next);
  journal_->Set(next == 0 ? &bucket->last : &entries_[next].previous[chain], previous);
}

// Without a capacity no index is valid: from now on nothing is found, added or removed.
uint32_t MatchTable::Corrupt(const Fault& fault) {
  if (fault_.kind == FaultKind::kNone) {
    fault_ = fault;
  }
  capacity_ = 0;
  return 0;
}

}  // namespace ferry::shm
