#include "internode/registration/registration_cache.h"

#include <algorithm>
#include <utility>

namespace ferry::progress {

using Entry = RegistrationCache::Entry;

namespace {

// The part of a limit that uses by peers may take; 0: no limit.
uint64_t PeersShare(uint64_t limit) { return limit - limit / 2; }

}  // namespace

// Has no branches that depend on the addresses: they cannot be predicted.
std::vector<RegistrationCache::Interval>::iterator RegistrationCache::FirstBehind(
    uintptr_t address) {
  size_t first = 0;
  for (size_t length = index_.size(); length > 0;) {
    const size_t half = (length + 1) / 2;
    first += index_[first + half - 1].begin <= address ? half : 0;
    length -= half;
  }
  return index_.begin() + static_cast<ptrdiff_t>(first);
}

Entry* RegistrationCache::Find(uintptr_t begin, uintptr_t end, const MemoryIdentity& identity) {
  const auto behind = FirstBehind(begin);
  if (behind == index_.begin()) {
    return nullptr;
  }
  const auto found = std::prev(behind);
  if (found->end < end) {
    return nullptr;
  }
  if (found->entry->identity != identity) {
    stale_.Add(1);
    Unlist(found, behind);
    return nullptr;
  }
  return found->entry;
}

Entry* RegistrationCache::Insert(uintptr_t begin, uintptr_t end, const MemoryIdentity& identity) {
  // An entry that overlaps and belongs to other memory is stale; one that lies within is of no more
  // use.
  auto first = std::partition_point(index_.begin(), index_.end(),
                                    [begin](const Interval& one) { return one.end <= begin; });
  while (first != index_.end() && first->begin < end) {
    const bool stale = first->entry->identity != identity;
    if (stale || (first->begin >= begin && first->end <= end)) {
      stale_.Add(stale ? 1 : 0);
      const auto at = first - index_.begin();
      Unlist(first, std::next(first));
      first = index_.begin() + at;
    } else {
      ++first;
    }
  }
  Entry& entry = used_.emplace_back();
  entry.self_ = std::prev(used_.end());
  entry.begin = begin;
  entry.end = end;
  entry.identity = identity;
  entry.listed = true;
  index_.insert(FirstBehind(begin), {begin, end, &entry});
  entries_.Add(1);
  bytes_.Add(entry.bytes());
  return &entry;
}

void RegistrationCache::SetReady(Entry* entry) {
  entry->state = Entry::State::kReady;
  if (entry->users == 0 && entry->listed) {
    idle_.splice(idle_.end(), used_, entry->self_);
  }
}

void RegistrationCache::SetFailed(Entry* entry, ErrorCode error) {
  Unlist(entry);
  entry->state = Entry::State::kFailed;
  entry->error = error;
}

void RegistrationCache::Use(Entry* entry, UseFor use) {
  if (use == UseFor::kPeer && entry->peers++ == 0) {
    ++peer_entries_;
    peer_bytes_ += entry->bytes();
  }
  if (entry->users++ == 0 && entry->listed && entry->state != Entry::State::kPinning) {
    used_.splice(used_.end(), idle_, entry->self_);
  }
}

void RegistrationCache::Unuse(Entry* entry, UseFor use) {
  if (use == UseFor::kPeer && --entry->peers == 0) {
    --peer_entries_;
    peer_bytes_ -= entry->bytes();
  }
  if (--entry->users == 0 && entry->listed && entry->state != Entry::State::kPinning) {
    idle_.splice(idle_.end(), used_, entry->self_);
  }
}

void RegistrationCache::Unlist(Entry* entry) {
  if (entry->listed) {
    const auto found = std::prev(FirstBehind(entry->begin));
    Unlist(found, std::next(found));
  }
}

void RegistrationCache::UnlistAll(uintptr_t begin, uintptr_t end, const MemoryIdentity& identity) {
  auto first = std::partition_point(index_.begin(), index_.end(),
                                    [begin](const Interval& one) { return one.end <= begin; });
  while (first != index_.end() && first->begin < end) {
    if (first->entry->identity.region != identity.region) {
      ++first;
      continue;
    }
    auto last = first;
    while (last != index_.end() && last->begin < end &&
           last->entry->identity.region == identity.region) {
      ++last;
    }
    const auto at = first - index_.begin();
    Unlist(first, last);
    first = index_.begin() + at;
  }
}

void RegistrationCache::Unlist(std::vector<Interval>::iterator first,
                               std::vector<Interval>::iterator last) {
  for (auto one = first; one != last; ++one) {
    Entry& entry = *one->entry;
    const bool idle = entry.users == 0 && entry.state != Entry::State::kPinning;
    entry.listed = false;
    unlisted_.splice(unlisted_.end(), idle ? idle_ : used_, entry.self_);
  }
  index_.erase(first, last);
}

void RegistrationCache::Erase(Entry* entry) {
  Unlist(entry);
  entries_.Subtract(1);
  bytes_.Subtract(entry->bytes());
  unlisted_.erase(entry->self_);
}

bool RegistrationCache::CanHold(uint64_t bytes, UseFor use) const {
  const uint64_t limit = use == UseFor::kPeer ? PeersShare(limits_.bytes) : limits_.bytes;
  return limit == 0 || bytes <= limit;
}

bool RegistrationCache::MayUse(const Entry* entry, uint64_t bytes, UseFor use) const {
  if (use == UseFor::kTransfer || (entry != nullptr && entry->peers != 0)) {
    return true;
  }
  const uint64_t more = entry != nullptr ? entry->bytes() : bytes;
  // One at a time always may, however it came to be so large.
  return peer_entries_ == 0 ||
         ((limits_.entries == 0 || peer_entries_ < PeersShare(limits_.entries)) &&
          (limits_.bytes == 0 || peer_bytes_ + more <= PeersShare(limits_.bytes)));
}

bool RegistrationCache::HasRoom(uint64_t bytes) const {
  return (limits_.entries == 0 || entries() < limits_.entries) &&
         (limits_.bytes == 0 || (bytes <= limits_.bytes && this->bytes() <= limits_.bytes - bytes));
}

void RegistrationCache::FillStatistics(RegistrationStatistics* statistics) const {
  statistics->entries = entries();
  statistics->entries_limit = limits_.entries;
  statistics->bytes = bytes();
  statistics->bytes_limit = limits_.bytes;
  statistics->hits = hits_.value();
  statistics->misses = misses_.value();
  statistics->evictions = evictions_.value();
  statistics->stale = stale_.value();
}

}  // namespace ferry::progress
