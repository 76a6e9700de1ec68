#include "daemon/pairs/deferred_pool.h"

#include <algorithm>
#include <cassert>

namespace ferry::daemon {

void DeferredPool::Join(Job job, uint32_t weight) {
  Member& member = members_[job];
  member.weight = std::max<uint32_t>(weight, 1);
}

void DeferredPool::Leave(Job job) {
  const auto found = members_.find(job);
  if (found != members_.end()) {
    assert(!found->second.is_active());
    in_use_ -= found->second.held;
    members_.erase(found);
  }
}

// The weight of those that hold or want entries, `member` among them.
uint64_t DeferredPool::ActiveWeight(const Member& member) const {
  uint64_t weight = member.is_active() ? 0 : member.weight;
  for (const auto& [job, one] : members_) {
    weight += one.is_active() ? one.weight : 0;
  }
  return weight;
}

uint32_t DeferredPool::ShareOf(const Member& member, uint64_t active_weight) const {
  return static_cast<uint32_t>(uint64_t{entries_} * member.weight / active_weight);
}

bool DeferredPool::Grants(const Member& member) const {
  if (in_use_ >= entries_) {
    return false;
  }
  const uint64_t active_weight = ActiveWeight(member);
  if (member.held < ShareOf(member, active_weight)) {
    return true;
  }
  // More than its share: what is free then, less what others have been refused within theirs. Those
  // whose share is less than one entry have one in turn.
  uint32_t wanted = 0;
  for (const auto& [job, one] : members_) {
    if (&one == &member || one.in_software == 0) {
      continue;
    }
    const uint32_t share = ShareOf(one, active_weight);
    const bool is_next =
        share == 0 && one.held == 0 && (member.held != 0 || one.served < member.served);
    wanted += is_next ? 1 : std::min(one.in_software, std::max(share, one.held) - one.held);
  }
  return in_use_ + wanted < entries_;
}

// One that wanted nothing for a while has saved up nothing.
void DeferredPool::CatchUp(Member* member) const {
  double least = 0;
  bool any = false;
  for (const auto& [job, one] : members_) {
    if (one.is_active()) {
      least = any ? std::min(least, one.served) : one.served;
      any = true;
    }
  }
  member->served = std::max(member->served, least);
}

DeferredPool::Place DeferredPool::Begin(Job job) {
  Member& member = members_[job];
  if (!member.is_active()) {
    CatchUp(&member);
  }
  if (!Grants(member)) {
    member.in_software++;
    member.counts.in_software++;
    counts_.in_software++;
    return Place::kSoftware;
  }
  member.held++;
  member.served += 1.0 / member.weight;
  in_use_++;
  member.counts.on_nic++;
  counts_.on_nic++;
  return Place::kNic;
}

void DeferredPool::End(Job job, Place place) {
  Member& member = members_[job];
  if (place == Place::kNic) {
    assert(member.held > 0);
    member.held--;
    in_use_--;
  } else {
    assert(member.in_software > 0);
    member.in_software--;
  }
}

void DeferredPool::Refused(Job job) {
  End(job, Place::kNic);
  Member& member = members_[job];
  member.in_software++;
  for (Counts* counts : {&member.counts, &counts_}) {
    counts->on_nic--;
    counts->in_software++;
  }
}

uint32_t DeferredPool::HeldBy(Job job) const {
  const auto found = members_.find(job);
  return found == members_.end() ? 0 : found->second.held;
}

DeferredPool::Counts DeferredPool::CountsOf(Job job) const {
  const auto found = members_.find(job);
  return found == members_.end() ? Counts{} : found->second.counts;
}

}  // namespace ferry::daemon
