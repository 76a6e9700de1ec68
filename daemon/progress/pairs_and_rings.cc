#include "daemon/progress/pairs_and_rings.h"

#include <algorithm>
#include <span>
#include <string>

namespace ferry::daemon {
namespace {

using progress::BodyOf;
using progress::HeadOf;
using progress::PacketKind;

// Nothing tells of a doorbell that a stream writes: a sleep lasts as long as it may be late.
constexpr uint64_t kDoorbellNs = 50'000;
// Requests of devices in one turn. So many come only from producers that go on, and that soon wait
// for room.
constexpr uint32_t kManyRequests = 32;

}  // namespace

PairsAndRings::PairsAndRings(const progress::ExtensionParts& parts,
                             const DeferredRules& deferred_rules)
    : transport_(parts.transport),
      pairs_(parts.transport, parts.outbound, parts.registrar, parts.registrations,
             parts.timeout_ns, deferred_rules),
      rings_(pairs_, parts.one_sided, parts.timeout_ns) {}

Status PairsAndRings::AddPair(progress::ServedRank* rank, const PairPlan& plan) {
  if (rank == nullptr || rank->ended) {
    return {ErrorCode::kNotFound, "rank " + std::to_string(plan.name.rank) + " is not served here"};
  }
  if (!rank->job->IsRank(plan.peer) || rank->job->RouteTo(plan.peer).link == nullptr) {
    return {ErrorCode::kNodeUnreachable,
            "no way leads to the node of rank " + std::to_string(plan.peer) + " yet"};
  }
  return pairs_.Add(*rank, plan);
}

uint32_t PairsAndRings::AdvanceBeforePoll(uint64_t now_ns) {
  asked_ = rings_.Advance(now_ns);
  return asked_ + pairs_.Advance(now_ns);
}

// Polling may have taken packets that clear messages to be sent.
uint32_t PairsAndRings::AdvanceAfterPoll(uint64_t now_ns) {
  const uint32_t moved = pairs_.Advance(now_ns);
  const uint32_t asked = rings_.Advance(now_ns);
  asked_ += asked;
  return moved + asked;
}

bool PairsAndRings::is_asked() const { return asked_ >= kManyRequests; }

bool PairsAndRings::OnPacket(progress::Job& job, const progress::Packet& packet) {
  switch (static_cast<progress::PacketKind>(packet.header.kind)) {
    case progress::PacketKind::kPairWindow:
      if (const auto window = BodyOf<progress::WirePairWindow>(packet.body)) {
        pairs_.OnWindow(job, packet.header, *window);
        return true;
      }
      return false;
    case progress::PacketKind::kPairEnd:
      if (const auto end = BodyOf<progress::WirePairEnd>(packet.body)) {
        pairs_.OnEnd(job, packet.header, *end);
        return true;
      }
      return false;
    case progress::PacketKind::kPairNic:
      if (const auto nic = BodyOf<progress::WirePairNic>(packet.body)) {
        pairs_.OnNic(job, packet.header, *nic);
        return true;
      }
      return false;
    case progress::PacketKind::kPairClear:
      if (const auto clear = BodyOf<progress::WirePair>(packet.body)) {
        pairs_.OnClear(job, packet.header, *clear);
        return true;
      }
      return false;
    case progress::PacketKind::kPairData:
    case progress::PacketKind::kPairArrived:
      if (const auto words = HeadOf<progress::WirePair>(packet.body)) {
        pairs_.OnMessage(job, packet.header, *words,
                         packet.body.subspan(sizeof(progress::WirePair)));
        return true;
      }
      return false;
    default:
      return false;
  }
}

bool PairsAndRings::HasTransfers(uint64_t now_ns) const {
  return pairs_.is_armed() || pairs_.transfer_bytes() != 0 || rings_.is_hot(now_ns);
}

uint64_t PairsAndRings::NextNs(uint64_t now_ns) const {
  const uint64_t next = std::min(pairs_.next_ns(), rings_.NextNs(now_ns));
  return pairs_.is_armed() ? std::min(next, now_ns + kDoorbellNs) : next;
}

void PairsAndRings::Report(size_t nic, NicStatistics* statistics) const {
  if (nic == 0) {
    statistics->device_direct = pairs_.device_direct();
  }
  const DeferredPool* const pool = pairs_.deferred_pool(nic);
  if (pool == nullptr) {
    return;
  }
  statistics->deferred_entries = pool->entries();
  statistics->deferred_busy = pool->in_use();
  statistics->deferred_operations = pool->counts().on_nic;
  statistics->deferred_overflows = pool->counts().in_software;
  const transport::DeferredStatistics& work =
      transport_.Rails()[nic]->deferred_work()->statistics();
  statistics->deferred_counters = work.counters;
  statistics->deferred_rings = work.rings;
}

void PairsAndRings::CloseOf(progress::ServedRank& rank, ErrorCode error) {
  rings_.CloseOf(rank, error);
  pairs_.RemoveOf(rank);
}

void PairsAndRings::CloseIn(progress::ServedRank& rank, progress::ServedRegion& region) {
  rings_.CloseIn(rank, region);
  pairs_.Release(region);
}

}  // namespace ferry::daemon
