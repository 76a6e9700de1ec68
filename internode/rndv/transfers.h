// Transfers: the life of a large message in one daemon, for rendezvous gets, puts and staged sends.
//
// A transfer moves in *fragments*: ranges of the message, each of which is a read, a write or a
// copy. A few fragments are under way at a time. Where a fragment cannot begin, its transfer waits
// in a queue for the resource that it needs. A transfer that has failed is stopped: it begins no
// more fragments. It ends when nothing of it is under way and no fragment is left to begin.
//
// Calling thread: the progress thread. Does not block.
#pragma once

#include <algorithm>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

#include "common/slot_map.h"
#include "internode/delivery/reports.h"
#include "internode/rndv/transfer.h"

namespace ferry::progress {

// The transfers of one kind: T derives from Transfer, P from Fragment, and Self from this. T says
// kReceiving and kTraceKind. Self has
//
//   MayBegin(t)            whether t may begin a fragment, if it gets what that wants
//   BeginFragment(id, t, now) kOk: begun. kWouldBlock: t waits, for a slot or what it has put into
//                          t.wants. Else t fails
//   OnEnd(t, rank, now)    t has ended, and is forgotten next; `rank` may be null (Transfer::rank)
//   FlowOf(t)              whose part of the slots it takes, and in whose line it waits for one
//
// and may have OnStopped and NameOfWant in place of those here.
template <typename Self, typename T, typename P>
class Transfers {
 public:
  // Fail the transfers that match; each ends once nothing of it is under way.
  void FailOf(const ServedRank* rank, ErrorCode error, uint64_t now_ns) {
    FailIf(error, now_ns, [rank](const T& t) { return t.rank == rank; });
  }
  void FailWith(const Job* job, uint32_t peer, ErrorCode error, uint64_t now_ns) {
    FailIf(error, now_ns, [job, peer](const T& t) { return t.job == job && t.peer == peer; });
  }
  void FailBetween(const ServedRank* rank, uint32_t peer, ErrorCode error, uint64_t now_ns) {
    FailIf(error, now_ns, [rank, peer](const T& t) { return t.rank == rank && t.peer == peer; });
  }
  void FailIn(const ServedRegion* region, ErrorCode error, uint64_t now_ns) {
    FailIf(error, now_ns, [region](const T& t) { return t.region == region; });
  }

  // Reports the transfers of `rank`, for people to read.
  void Report(const ServedRank& rank, uint64_t now_ns, std::vector<TransferReport>* reports) {
    transfers_.ForEach([&](TransferId, const T& t) {
      if (t.rank == &rank) {
        reports->push_back({T::kReceiving, t.request, t.peer, t.done_bytes, t.size_bytes,
                            now_ns - std::min(now_ns, t.heard_ns), Self::NameOfWant(t), WayOf(t)});
      }
    });
  }
  // Writes the transfers that have not ended yet into the trace.
  void TraceUnfinished() {
    transfers_.ForEach(
        [](TransferId, const T& t) { TraceWhole(t, T::kTraceKind, ErrorCode::kWouldBlock); });
  }

  bool empty() const { return transfers_.empty(); }
  bool IsIdleWith(const Job* job, uint32_t peer) {
    bool any = false;
    transfers_.ForEach([&](TransferId, const T& t) { any |= t.job == job && t.peer == peer; });
    return !any;
  }

 protected:
  // `most_slots`: fragments that use slots of the network; a flow below its part may exceed that.
  explicit Transfers(uint32_t most_slots) : slots_(most_slots) {}

  // Adds a transfer of `rank`, which counts as a use of the rank's memory.
  TransferId Insert(ServedRank& rank, uint64_t now_ns);
  P& InsertFragment(TransferId id, const T& t, uint64_t now_ns);

  // Begins what can be begun, and ends the transfer if that was all.
  void Step(TransferId id, T& t, uint64_t now_ns);
  // Forgets a fragment that has ended, and goes on with its transfer.
  void EndFragment(const P& fragment, ErrorCode error, uint64_t now_ns);
  void Fail(TransferId id, T& t, ErrorCode error, uint64_t now_ns);
  void EndIfDone(TransferId id, T& t, uint64_t now_ns);
  template <typename Predicate>
  void FailIf(ErrorCode error, uint64_t now_ns, Predicate&& matches);

  void OnStopped(T& /*t*/, uint64_t /*now_ns*/) {}
  static const char* NameOfWant(const T& t) { return progress::NameOfWant(t.wants); }

  // The share of the blocks that belongs to the transfer's node.
  static SlotFlow& BlocksOf(const T& t);
  // How many fragments of one transfer may be under way, where `usual` is usual.
  static uint32_t Window(const T& t, uint32_t usual);
  // Takes a block for the next fragment. kWouldBlock: earlier waiters, or the node's share, leave
  // none.
  static ErrorCode TakeBlock(StagingDepot& depot, T& t, StagingBlock** block);
  // Go on with transfers that wait for a slot, while there are some; with all transfers of a queue;
  void ResumeForSlots(uint64_t now_ns);
  void ResumeAll(std::deque<TransferId>& queue, uint64_t now_ns);
  // with transfers that wait for a block, in their ranks' turns, while there is one.
  void Resume(StagingPool& pool, uint64_t now_ns);

  SlotMap<TransferId, T> transfers_;
  SlotMap<FragmentId, P> fragments_;
  SlotShares slots_;
  std::deque<TransferId> wants_memory_;

 private:
  static constexpr StagingUse kUse = T::kReceiving ? StagingUse::kIncoming : StagingUse::kOutgoing;

  Self& self() { return static_cast<Self&>(*this); }
  void Queue(TransferId id, T& t);
  bool ResumeOne(TransferId id, bool has_turn, uint64_t now_ns);
};

// ---- The skeleton ------------------------------------------------------------------------------

template <typename Self, typename T, typename P>
TransferId Transfers<Self, T, P>::Insert(ServedRank& rank, uint64_t now_ns) {
  const TransferId id = transfers_.Insert();
  T& t = *transfers_.Find(id);
  t.job = rank.job;
  t.rank = &rank;
  t.here = rank.rank();
  t.heard_ns = now_ns;
  t.begun_ns = rank.job->trace.Now(now_ns);
  ++rank.operations;
  return id;
}

template <typename Self, typename T, typename P>
P& Transfers<Self, T, P>::InsertFragment(TransferId id, const T& t, uint64_t now_ns) {
  const FragmentId fragment_id = fragments_.Insert();
  P& fragment = *fragments_.Find(fragment_id);
  fragment.self = fragment_id;
  fragment.transfer = id;
  fragment.begun_ns = t.job->trace.Now(now_ns);
  return fragment;
}

template <typename Self, typename T, typename P>
void Transfers<Self, T, P>::Step(TransferId id, T& t, uint64_t now_ns) {
  while (t.wants == Want::kNothing && !t.stopped && self().MayBegin(t)) {
    const ErrorCode code = self().BeginFragment(id, t, now_ns);
    if (code == ErrorCode::kWouldBlock) {
      Queue(id, t);
      break;
    }
    if (code != ErrorCode::kOk) {
      return Fail(id, t, code, now_ns);
    }
    t.heard_ns = now_ns;
  }
  EndIfDone(id, t, now_ns);
}

template <typename Self, typename T, typename P>
void Transfers<Self, T, P>::Queue(TransferId id, T& t) {
  if (t.wants == Want::kBlock) {
    t.stage->pool->waiters(kUse).Push(t.here, static_cast<uint64_t>(id), &BlocksOf(t));
  } else if (t.wants == Want::kMemory) {
    wants_memory_.push_back(id);
  } else {
    t.wants = Want::kSlot;
    slots_.Wait(self().FlowOf(t), static_cast<uint64_t>(id));
  }
}

template <typename Self, typename T, typename P>
void Transfers<Self, T, P>::EndFragment(const P& fragment, ErrorCode error, uint64_t now_ns) {
  const TransferId id = fragment.transfer;
  T& t = *transfers_.Find(id);
  --t.under_way;
  t.done_bytes += error == ErrorCode::kOk ? fragment.size_bytes : 0;
  fragments_.Erase(fragment.self);
  if (error != ErrorCode::kOk) {
    return Fail(id, t, error, now_ns);
  }
  Step(id, t, now_ns);
}

template <typename Self, typename T, typename P>
void Transfers<Self, T, P>::Fail(TransferId id, T& t, ErrorCode error, uint64_t now_ns) {
  if (!std::exchange(t.stopped, true)) {
    t.error = error;
    self().OnStopped(t, now_ns);
  }
  EndIfDone(id, t, now_ns);
}

template <typename Self, typename T, typename P>
void Transfers<Self, T, P>::EndIfDone(TransferId id, T& t, uint64_t now_ns) {
  if (t.under_way != t.lent || !(t.stopped || t.begun_bytes >= t.size_bytes)) {
    return;
  }
  ServedRank* const rank = std::exchange(t.rank, nullptr);
  if (rank != nullptr) {
    --rank->operations;
  }
  if (t.region != nullptr) {
    --std::exchange(t.region, nullptr)->users;
  }
  if (t.under_way == 0) {
    TraceWhole(t, T::kTraceKind, t.error);
    self().OnEnd(t, rank, now_ns);
    transfers_.Erase(id);
  }
}

template <typename Self, typename T, typename P>
template <typename Predicate>
void Transfers<Self, T, P>::FailIf(ErrorCode error, uint64_t now_ns, Predicate&& matches) {
  transfers_.ForEach([&](TransferId id, T& t) {
    if (matches(t)) {
      Fail(id, t, error, now_ns);
    }
  });
}

// ---- Waiting -----------------------------------------------------------------------------------

template <typename Self, typename T, typename P>
uint32_t Transfers<Self, T, P>::Window(const T& t, uint32_t usual) {
  return t.stage == nullptr || t.stage->pool == nullptr
             ? usual
             : t.stage->pool->Window(kUse, t.here, usual);
}

template <typename Self, typename T, typename P>
SlotFlow& Transfers<Self, T, P>::BlocksOf(const T& t) {
  NodeUse& node = t.job->UseOf(t.peer);
  return (t.stage == &t.job->device_stage ? node.device_blocks
                                          : node.private_blocks)[static_cast<uint32_t>(kUse)];
}

template <typename Self, typename T, typename P>
ErrorCode Transfers<Self, T, P>::TakeBlock(StagingDepot& depot, T& t, StagingBlock** block) {
  if (const ErrorCode code = depot.Provide(*t.stage); code != ErrorCode::kOk) {
    return code;
  }
  StagingPool& pool = *t.stage->pool;
  SlotFlow& flow = BlocksOf(t);
  const bool is_next = std::exchange(t.has_turn, false) || pool.waiters(kUse).empty();
  if (is_next && pool.shares(kUse).MayTake(flow)) {
    *block = pool.Take(kUse, t.here, &flow);
  }
  if (*block == nullptr) {
    t.wants = Want::kBlock;
    return ErrorCode::kWouldBlock;
  }
  return ErrorCode::kOk;
}

// Goes on with one transfer that has waited. True: it waits again.
template <typename Self, typename T, typename P>
bool Transfers<Self, T, P>::ResumeOne(TransferId id, bool has_turn, uint64_t now_ns) {
  if (T* t = transfers_.Find(id); t != nullptr) {
    t->wants = Want::kNothing;
    t->has_turn = has_turn;
    Step(id, *t, now_ns);
  }
  T* const left = transfers_.Find(id);
  if (left == nullptr) {
    return false;
  }
  left->has_turn = false;  // whether it took its block or could not
  return left->wants != Want::kNothing;
}

template <typename Self, typename T, typename P>
void Transfers<Self, T, P>::ResumeForSlots(uint64_t now_ns) {
  slots_.Advance([this, now_ns](uint64_t id) {
    return ResumeOne(TransferId{id}, /*has_turn=*/false, now_ns);
  });
}

template <typename Self, typename T, typename P>
void Transfers<Self, T, P>::ResumeAll(std::deque<TransferId>& queue, uint64_t now_ns) {
  for (size_t n = queue.size(); n > 0; --n) {
    const TransferId id = queue.front();
    queue.pop_front();
    ResumeOne(id, /*has_turn=*/false, now_ns);
  }
}

template <typename Self, typename T, typename P>
void Transfers<Self, T, P>::Resume(StagingPool& pool, uint64_t now_ns) {
  FairQueue& waiters = pool.waiters(kUse);
  if (!pool.failure().ok()) {
    for (const uint64_t waiter : waiters.PopAll()) {
      if (T* t = transfers_.Find(TransferId{waiter}); t != nullptr) {
        t->wants = Want::kNothing;
        Fail(TransferId{waiter}, *t, pool.failure().code(), now_ns);
      }
    }
  }
  const auto may_take = [&](const SlotFlow* part) { return pool.shares(kUse).MayTake(*part); };
  while (!waiters.empty() && pool.HasFree(kUse)) {
    const std::optional<uint64_t> next = waiters.PopIf(may_take);
    if (!next) {
      break;
    }
    ResumeOne(TransferId{*next}, /*has_turn=*/true, now_ns);
  }
}

}  // namespace ferry::progress
