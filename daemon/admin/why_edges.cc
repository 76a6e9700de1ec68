#include "daemon/admin/why_edges.h"

#include <algorithm>

#include "daemon/admin/why_kernels.h"
#include "daemon/admin/why_steps.h"
#include "shm/call_record.h"

namespace ferry::daemon {
namespace {

// The only call that a thread of the rank is in; calls of kernels do not count.
const control::RankCall* OnlyCall(const control::RankWait& look) {
  const control::RankCall* only = nullptr;
  for (const control::RankCall& call : look.calls()) {
    if (IsOfKernel(call)) {
      continue;
    }
    if (only != nullptr) {
      return nullptr;
    }
    only = &call;
  }
  return only;
}

}  // namespace

bool IsStuck(const control::WaitEdge* edge) {
  return edge != nullptr &&
         (edge->receives() || edge->sends() || edge->announced() != 0 || edge->meets());
}

bool IsAny(const control::RankWait& look) {
  const bool is_by_kernel = NeedsOf(look) != KernelNeeds::kNothing;
  return std::any_of(look.calls().begin(), look.calls().end(), [&](const auto& call) {
    return !call.ends_by().empty() && (is_by_kernel || !IsOfKernel(call));
  });
}

bool IsForAnybody(const control::RankWait& look) {
  const control::RankCall* const call = OnlyCall(look);
  return (call != nullptr && call->ends_by() == kAnybodyMaySend) ||
         NeedsOf(look) == KernelNeeds::kAnyRank;
}

bool IsAhead(const control::RankWait& look, const control::WaitEdge& edge) {
  const control::RankCall* const call = OnlyCall(look);
  return edge.receives() && !edge.sends() && call != nullptr &&
         call->name() == shm::CallText(shm::CallName::kFerryQueueWait);
}

bool MeetsOthers(const control::RankWait& look) {
  return std::any_of(look.calls().begin(), look.calls().end(),
                     [](const auto& call) { return call.meets(); });
}

bool GoesOneWay(const control::RankWait& look) {
  return look.state() == "waits" && look.edges_size() == 1 && look.edges(0).peer() != look.rank() &&
         NeedsOf(look) == KernelNeeds::kNothing && !IsForAnybody(look) && !MeetsOthers(look) &&
         !IsAhead(look, look.edges(0));
}

bool HasCome(const control::RankWait& rank, const control::RankWait& other) {
  for (const control::RankCall& call : rank.calls()) {
    for (const control::RankCall& its : other.calls()) {
      if (call.meets() && its.meets() && call.group() == its.group() &&
          (its.number() > call.number() ||
           (its.number() == call.number() && its.name() == call.name()))) {
        return true;
      }
    }
  }
  return false;
}

namespace {

// Returns true if the other rank is known to wait elsewhere on its way to a call that `rank` has
// come to: in an earlier one of the group, or in another one in its place.
bool IsBehind(const control::RankWait& rank, const control::RankWait& other) {
  for (const control::RankCall& call : rank.calls()) {
    for (const control::RankCall& its : other.calls()) {
      if (call.meets() && its.meets() && call.group() == its.group() &&
          (its.number() < call.number() ||
           (its.number() == call.number() && its.name() != call.name()))) {
        return true;
      }
    }
  }
  return false;
}

// Whom a collective waits for is known as of some seconds before: the other rank may have come
// since then, left it early and be elsewhere. Between nodes what ends the wait may be under way.
bool IsMeetingCertain(const control::RankWait& waiter, const control::RankWait& peer) {
  const bool is_collective = std::any_of(waiter.calls().begin(), waiter.calls().end(),
                                         [](const auto& call) { return call.meets(); });
  return waiter.node() == peer.node() && (!is_collective || IsBehind(waiter, peer));
}

}  // namespace

bool IsCertain(const control::WaitEdge& edge, const control::RankWait& waiter,
               const control::RankWait& peer) {
  if (edge.sends() || (edge.meets() && IsMeetingCertain(waiter, peer))) {
    return true;
  }
  if (edge.receives() && !peer.queued_to_waiter() &&
      (!edge.has_drained() || edge.drained() == peer.sent_to_waiter())) {
    return true;
  }
  return edge.announced() != 0 &&
         std::any_of(peer.unexpected().begin(), peer.unexpected().end(), [&](const auto& group) {
           return group.source() == waiter.rank() && group.announced() &&
                  group.tag() == edge.tag() && group.context() == edge.context() &&
                  group.count() >= edge.announced();
         });
}

}  // namespace ferry::daemon
