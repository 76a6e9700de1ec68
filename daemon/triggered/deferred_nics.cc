#include "daemon/triggered/deferred_nics.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <cassert>

#include "shm/atomic.h"
#include "transports/api/rail_choice.h"

namespace ferry::daemon {
namespace {

// The cost of a message for a NIC beside its bytes, in bytes: short ones are shared out by number.
constexpr uint64_t kMessageCostBytes = 4096;

}  // namespace

// ---- DeferredPool ----

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

// ---- SharedTrigger ----

void SharedTrigger::Ring() {
  const uint64_t value = shm::LoadAcquire(doorbell_->value);
  if (value <= rung_) {
    return;
  }
  if (counter_) {
    deferred_.AddToCounter(*counter_, value - rung_);
  }
  rung_ = value;
}

StatusOr<transport::NicCounter> SharedTrigger::Counter() {
  if (!counter_) {
    StatusOr<transport::NicCounter> opened = deferred_.OpenCounter();
    FERRY_RETURN_IF_ERROR(opened.status());
    counter_ = *opened;
    if (rung_ != 0) {
      deferred_.AddToCounter(*counter_, rung_);
    }
  }
  return *counter_;
}

void SharedTrigger::NoteOver(bool is_left) {
  --armed_;
  any_left_ |= is_left;
  if (armed_ == 0 && any_left_) {
    CloseCounter();
  }
}

void SharedTrigger::CloseCounter() {
  if (counter_) {
    deferred_.CloseCounter(*counter_);
    counter_.reset();
  }
  any_left_ = false;
}

std::shared_ptr<SharedTrigger> SharedTriggers::Hold(const shm::CounterLayout* doorbell) {
  std::erase_if(by_doorbell_, [](const auto& entry) { return entry.second.expired(); });
  std::weak_ptr<SharedTrigger>& known = by_doorbell_[doorbell];
  std::shared_ptr<SharedTrigger> trigger = known.lock();
  if (trigger == nullptr) {
    trigger = std::make_shared<SharedTrigger>(deferred_, doorbell);
    known = trigger;
  }
  return trigger;
}

// ---- DeferredNics ----

// ---- One of them --------------------------------------------------------------------------------

DeferredNic::DeferredNic(transport::Transport& its_whole, transport::Transport& its_transport,
                         uint32_t its_index, progress::Registrar& its_registrar,
                         uint64_t its_timeout_ns, uint32_t most_entries)
    : whole(its_whole),
      transport(its_transport),
      index(its_index),
      deferred(*its_transport.deferred_work()),
      registrar(its_registrar),
      timeout_ns(its_timeout_ns),
      triggers(deferred),
      pool(std::min(deferred.entries(), most_entries)),
      parked(deferred) {}

DeferredNic::~DeferredNic() { (void)transport.DeregisterMemory(scratch_region.handle); }

Status DeferredNic::SetUp(bool gives_pages) {
  StatusOr<transport::MemoryRegion> registered =
      transport.RegisterMemory(&scratch, sizeof(scratch), transport::Access::kLocal);
  FERRY_RETURN_IF_ERROR(registered.status());
  scratch_region = *registered;
  StatusOr<transport::PeerId> added = transport.AddPeer(transport.Address());
  FERRY_RETURN_IF_ERROR(added.status());
  self = *added;
  if (!gives_pages) {
    return Status();
  }
  const StatusOr<transport::NicCounter> counter = deferred.OpenCounter();
  if (counter.ok()) {
    page_descriptor = deferred.Doorbell(*counter).descriptor;
    deferred.CloseCounter(*counter);
  }
  return Status();
}

void DeferredNic::Join(DeferredPool::Job job, uint32_t weight, uint64_t size_bytes) {
  if (++pairs[job] == 1) {
    pool.Join(job, weight);
  }
  load_bytes += size_bytes + kMessageCostBytes;
}

void DeferredNic::Leave(DeferredPool::Job job, uint64_t size_bytes) {
  load_bytes -= size_bytes + kMessageCostBytes;
  if (--pairs[job] == 0) {
    pool.Leave(job);
    pairs.erase(job);
  }
}

// ---- All of them --------------------------------------------------------------------------------

DeferredNics::DeferredNics(transport::Transport& transport, progress::Registrar& registrar,
                           uint64_t timeout_ns, const DeferredRules& rules)
    : transport_(transport) {
  for (transport::Transport* rail : transport.Rails()) {
    std::unique_ptr<DeferredNic>& nic = nics_.emplace_back();
    if (rail->deferred_work() == nullptr || rules.most_entries == 0) {
      continue;
    }
    nic = std::make_unique<DeferredNic>(transport, *rail, static_cast<uint32_t>(nics_.size() - 1),
                                        registrar, timeout_ns, rules.most_entries);
    if (const Status status = nic->SetUp(rules.gives_pages); !status.ok()) {
      nic.reset();
      spdlog::warn("the deferred work of NIC {} is not used: {}", rail->Describe().domain,
                   status.message());
    }
  }
}

bool DeferredNics::any() const {
  return std::ranges::any_of(nics_, [](const auto& nic) { return nic != nullptr; });
}

const DeferredPool* DeferredNics::pool(size_t nic) const {
  return nics_[nic] != nullptr ? &nics_[nic]->pool : nullptr;
}

void DeferredNics::Expect(transport::PeerId peer) {
  for (size_t nic = 0; nic < nics_.size(); ++nic) {
    (void)transport_.Reaches(peer, nic);
  }
}

ErrorCode DeferredNics::Choose(transport::PeerId peer, uint32_t nearest, uint32_t* nic) {
  std::vector<transport::RailState> states(nics_.size());
  for (size_t i = 0; i < nics_.size(); ++i) {
    if (nics_[i] == nullptr) {
      continue;
    }
    const ErrorCode code = transport_.Reaches(peer, i);
    if (code == ErrorCode::kWouldBlock) {
      return code;
    }
    states[i] = {.open = code == ErrorCode::kOk, .load_bytes = nics_[i]->load_bytes};
  }
  const std::optional<size_t> chosen = transport::ChooseRail(states, nearest);
  *nic = static_cast<uint32_t>(chosen.value_or(0));
  return chosen ? ErrorCode::kOk : ErrorCode::kNotFound;
}

DeferredNic* DeferredNics::Find(uint32_t nic, transport::PeerId peer) {
  if (nic >= nics_.size() || transport_.PeerOn(peer, nic) == transport::kUnknownPeer) {
    return nullptr;
  }
  return nics_[nic].get();
}

int DeferredNics::PageDescriptor(uint32_t nic) const {
  return nic < nics_.size() && nics_[nic] != nullptr ? nics_[nic]->page_descriptor : -1;
}

void DeferredNics::ClosePagesOf(const void* rank) {
  for (const auto& nic : nics_) {
    if (nic != nullptr) {
      nic->parked.CloseOf(rank);
    }
  }
}

uint32_t DeferredNics::Poll(transport::DeferredSink& sink, uint64_t now_ns) {
  uint32_t done = 0;
  for (const auto& nic : nics_) {
    if (nic != nullptr) {
      nic->parked.Look();
      done += static_cast<uint32_t>(nic->deferred.Poll(sink, now_ns));
    }
  }
  return done;
}

uint64_t DeferredNics::NextNs(uint64_t now_ns) const {
  uint64_t next_ns = UINT64_MAX;
  for (const auto& nic : nics_) {
    next_ns = nic != nullptr ? std::min(next_ns, nic->deferred.NextPollNs(now_ns)) : next_ns;
  }
  return next_ns;
}

}  // namespace ferry::daemon
