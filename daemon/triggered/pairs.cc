#include "daemon/triggered/pairs.h"

#include <algorithm>
#include <utility>

#include "shm/atomic.h"
#include "shm/counters.h"
#include "shm/pair_move.h"

namespace ferry::daemon {

Pairs::Pairs(transport::Transport& transport, progress::Outbound& outbound,
             progress::Registrar& registrar, progress::Registrations& registrations,
             uint64_t timeout_ns, DeferredRules deferred_rules)
    : deferred_rules_(std::move(deferred_rules)),
      network_{transport, outbound, registrar, registrations, timeout_ns},
      nics_(transport, registrar, timeout_ns, deferred_rules_) {}

Pairs::~Pairs() = default;

// ---- Coming and going ---------------------------------------------------------------------------

ErrorCode Pairs::Reach(progress::ServedRank& rank, const NicWindow& window,
                       progress::Claim* claim) {
  progress::ServedRegion* const region =
      rank.FindRegion({window.region, 0, window.offset}, window.size_bytes);
  return region == nullptr || !region->memory.by_stream
             ? ErrorCode::kInvalidBuffer
             : network_.registrations.HoldDevice(region->memory, window.offset, window.size_bytes,
                                                 progress::UseFor::kTransfer, network_.now_ns,
                                                 claim);
}

Status Pairs::Add(progress::ServedRank& rank, const PairPlan& plan) {
  auto added = std::make_unique<Pair>(plan, &rank);
  Pair& pair = *added;
  if (!pair.is_short()) {
    pair.region = rank.FindRegion({plan.window.region->id, 0, plan.window.offset}, plan.size_bytes);
    if (pair.region == nullptr) {
      return {ErrorCode::kInvalidBuffer, "the memory of a matched request is gone"};
    }
    if (pair.region->memory.begin() == nullptr) {
      return {ErrorCode::kUnsupported,
              "the network card does not reach a matched request's memory"};
    }
  }
  const progress::Link* const link = rank.job->RouteTo(plan.peer).link;
  if (!nics_.any() || pair.has_cells()) {
    MoveBySoftware(pair);
  } else if (!plan.is_send && link != nullptr) {
    nics_.Expect(link->peer);  // it will have to choose one
  }
  OfRank& mine = by_rank_[&rank];
  mine.pairs.push_back(&pair);
  mine.by_end[{plan.end.region->id, plan.end.offset}] = &pair;
  Watch(pair);
  pairs_.emplace(pair.number(), std::move(added));
  return {};
}

Pair* Pairs::Find(const PairName& name) {
  const auto found = pairs_.find(name.number);
  if (found == pairs_.end() || found->second->plan.name.rank != name.rank ||
      found->second->plan.name.job_id != name.job_id) {
    return nullptr;
  }
  return found->second.get();
}

// The pair of a packet; null unless it is one of the ranks that the packet names.
Pair* Pairs::FindFor(const progress::Job& job, const progress::PacketHeader& header,
                     uint64_t number) {
  const auto found = pairs_.find(number);
  if (found == pairs_.end()) {
    return nullptr;
  }
  Pair& pair = *found->second;
  const bool fits = pair.rank->job == &job && pair.plan.name.rank == header.destination &&
                    pair.plan.peer == header.source && pair.error == ErrorCode::kOk;
  return fits ? &pair : nullptr;
}

// The mover of a packet that only software sends: its sender has decided on software, if this
// daemon has not decided yet.
SoftwareMover* Pairs::SoftwareFor(const progress::Job& job, const progress::PacketHeader& header,
                                  uint64_t number, bool is_send) {
  Pair* const pair = FindFor(job, header, number);
  if (pair == nullptr || pair->is_send() != is_send) {
    return nullptr;
  }
  const NicMover* const nic = NicOf(*pair);
  if (nic != nullptr && (is_send || nic->is_connected())) {
    return nullptr;
  }
  if (nic != nullptr || pair->mover == nullptr) {
    MoveBySoftware(*pair, /*is_agreed=*/true);
  }
  return static_cast<SoftwareMover*>(pair->mover.get());
}

void Pairs::End(const PairName& name, uint64_t rounds, ErrorCode error) {
  if (Pair* const pair = Find(name); pair != nullptr) {
    EndByOther(*pair, rounds, error);
  }
}

// The other end has gone, or will never move more than `rounds` messages.
void Pairs::EndByOther(Pair& pair, uint64_t rounds, ErrorCode error) {
  const bool may_lag = pair.mover != nullptr ? pair.mover->may_lag() : !pair.is_send();
  if (!may_lag || pair.rounds >= rounds) {
    Fail(pair, error);
  } else if (rounds < pair.last_round) {
    pair.last_round = rounds;
    pair.last_error = error;
    pair.tells_end = false;
  }
}

void Pairs::Remove(const PairName& name) {
  if (Pair* const pair = Find(name); pair != nullptr) {
    Forget(*pair);
  }
}

void Pairs::RemoveOf(const progress::ServedRank& rank) {
  for (auto next = pairs_.begin(); next != pairs_.end();) {
    Pair& pair = *next->second;
    ++next;
    if (pair.rank == &rank) {
      Forget(pair);
    }
  }
  nics_.ClosePagesOf(&rank);
}

// That of the same rank's receive whose end lies there, in the region of the send's own. Null:
// there is none.
Pair* Pairs::FindFollowed(const Pair& send, uint64_t end) const {
  const auto& by_end = by_rank_.at(send.rank).by_end;
  const auto found = by_end.find({send.plan.end.region->id, end});
  return found == by_end.end() || found->second->is_send() ? nullptr : found->second;
}

// Once its rank has started it.
void Pairs::ReadFollows(Pair& pair) {
  pair.knows_follows = true;
  const shm::FollowWords& words = pair.layout->follows;
  const uint32_t count = shm::LoadRelaxed(words.count);
  if (count == 0) {
    return;
  }
  if (!pair.is_send() || pair.is_ready() || count > shm::kMostFollowed) {
    return OnBroken(pair, ErrorCode::kCorrupt);
  }
  for (uint32_t i = 0; i < count; ++i) {
    Pair* const followed = FindFollowed(pair, shm::LoadRelaxed(words.ends[i]));
    if (followed == nullptr || std::ranges::find(pair.follows, followed) != pair.follows.end()) {
      return OnBroken(pair, ErrorCode::kInvalidRequest);
    }
    if (followed->followers.size() >= shm::kMostFollowers) {
      return OnBroken(pair, ErrorCode::kLimitExceeded);
    }
    pair.follows.push_back(followed);
    followed->followers.push_back(&pair);
  }
  for (const Pair* const followed : pair.follows) {
    if (followed->error != ErrorCode::kOk) {
      EndAfter(pair, followed->rounds, followed->error);
    }
  }
}

// Fails a follower once it has moved so many messages, and tells its other end. The rank cannot:
// its stream looks at what has failed only after all its waits, and the next one may be for a
// message that the other end's rank, which waits in the same way, does not pass on either.
void Pairs::EndAfter(Pair& pair, uint64_t rounds, ErrorCode error) {
  if (pair.error != ErrorCode::kOk) {
    return;
  }
  if (pair.rounds >= rounds) {
    PostEnd(pair, ErrorCode::kInvalidRequest, pair.rounds);
    Fail(pair, error);
  } else if (rounds < pair.last_round) {
    pair.last_round = rounds;
    pair.last_error = error;
    pair.tells_end = true;
  }
}

// Tells the other end that it fails with `error`, once it has moved so many messages.
void Pairs::PostEnd(const Pair& pair, ErrorCode error, uint64_t rounds) {
  network_.Post(
      pair, progress::PacketKind::kPairEnd,
      progress::WirePairEnd{pair.plan.peer_number, static_cast<int32_t>(error), 0, rounds});
}

void Pairs::Forget(Pair& pair) {
  for (Pair* const followed : std::exchange(pair.follows, {})) {
    std::erase(followed->followers, &pair);
  }
  // Nothing fires its followers any more. Their other ends hear of it from the rank, which takes
  // them back, too, or by the news of its end, which says why.
  for (Pair* const follower : std::exchange(pair.followers, {})) {
    Fail(*follower, ErrorCode::kCancelled);
    std::erase(follower->follows, &pair);
  }
  Fail(pair, ErrorCode::kCancelled);
  LeaveMover(pair);
  std::erase(watched_, &pair);
  const auto of_rank = by_rank_.find(pair.rank);
  std::erase(of_rank->second.pairs, &pair);
  std::erase_if(of_rank->second.by_end, [&](const auto& end) { return end.second == &pair; });
  if (of_rank->second.pairs.empty()) {
    by_rank_.erase(of_rank);
  }
  pairs_.erase(pair.number());
}

void Pairs::Release(const progress::ServedRegion& region) {
  for (const auto& [number, pair] : pairs_) {
    if (pair->region == &region) {
      Fail(*pair, ErrorCode::kInvalidBuffer);
    }
  }
}

void Pairs::FailTo(const progress::Job& job, uint32_t peer, ErrorCode error) {
  for (const auto& [number, pair] : pairs_) {
    if (pair->rank->job == &job && pair->plan.peer == peer) {
      Fail(*pair, error);
    }
  }
}

ErrorCode Pairs::StartByRing(progress::ServedRank& rank, const shm::Location& end,
                             uint64_t* start) {
  const auto of_rank = by_rank_.find(&rank);
  if (of_rank == by_rank_.end()) {
    return ErrorCode::kInvalidRequest;
  }
  const auto found = of_rank->second.by_end.find({end.region, end.address});
  if (found == of_rank->second.by_end.end()) {
    return ErrorCode::kInvalidRequest;
  }
  Pair& pair = *found->second;
  if (pair.error != ErrorCode::kOk) {
    return pair.error;
  }
  const uint64_t made = pair.starts.Made();
  const uint64_t armed = shm::LoadAcquire(pair.layout->armed);
  if (made >= armed) {
    return ErrorCode::kInvalidRequest;
  }
  // Starts by a page do not show in the doorbell; a rank arms one that a device makes by itself, so
  // it is the last one.
  *start = shm::LoadRelaxed(pair.layout->page.used) != 0 ? armed : made + 1;
  shm::StoreRelease(pair.layout->start.value, *start);  // Pairs with Starts::Made.
  Watch(pair);
  return ErrorCode::kOk;
}

// ---- Packets of the other daemon ----------------------------------------------------------------

void Pairs::OnWindow(progress::Job& job, const progress::PacketHeader& header,
                     const progress::WirePairWindow& window) {
  if (SoftwareMover* const mover = SoftwareFor(job, header, window.channel, true)) {
    mover->OnWindow(window);
  }
}

void Pairs::OnClear(progress::Job& job, const progress::PacketHeader& header,
                    const progress::WirePair& clear) {
  if (SoftwareMover* const mover = SoftwareFor(job, header, clear.channel, true)) {
    mover->OnClear();
  }
}

void Pairs::OnMessage(progress::Job& job, const progress::PacketHeader& header,
                      const progress::WirePair& message, std::span<const std::byte> data) {
  if (SoftwareMover* const mover = SoftwareFor(job, header, message.channel, false)) {
    mover->OnMessage(message,
                     header.kind == static_cast<uint8_t>(progress::PacketKind::kPairArrived), data);
  }
}

void Pairs::OnEnd(progress::Job& job, const progress::PacketHeader& header,
                  const progress::WirePairEnd& end) {
  if (Pair* const pair = FindFor(job, header, end.channel); pair != nullptr) {
    const auto error = static_cast<ErrorCode>(end.error);
    EndByOther(*pair, end.rounds, error == ErrorCode::kOk ? ErrorCode::kCorrupt : error);
  }
}

void Pairs::OnNic(progress::Job& job, const progress::PacketHeader& header,
                  const progress::WirePairNic& said) {
  Pair* const pair = FindFor(job, header, said.channel);
  if (pair == nullptr) {
    return;
  }
  const bool refused = said.refused != 0;
  NicMover* nic = NicOf(*pair);
  if (!pair->is_send()) {  // it answers
    if (nic != nullptr && !nic->is_connected() && refused) {
      MoveBySoftware(*pair, /*is_agreed=*/true);
    } else if (nic != nullptr && !refused) {
      nic->Connect({said.address, said.key});
    }
    return;
  }
  if (pair->mover == nullptr) {
    if (refused || !MoveByNic(*pair, said.nic)) {
      MoveBySoftware(*pair);
    } else {
      nic = NicOf(*pair);
      nic->Connect({said.address, said.key});
    }
  }
  if (!refused && nic == nullptr) {
    RefuseNic(*pair);
  }
}

// ---- The movers ---------------------------------------------------------------------------------

NicMover* Pairs::NicOf(const Pair& pair) {
  return pair.mover != nullptr && pair.mover->is_nic() ? static_cast<NicMover*>(pair.mover.get())
                                                       : nullptr;
}

void Pairs::OnComplete(uint64_t context, ErrorCode code) {
  const uint64_t number = PairOf(context);
  const bool is_nic = (context & transport::kDirectContext) != 0;
  PairMover* mover = nullptr;
  if (const auto found = pairs_.find(number); found != pairs_.end()) {
    mover = found->second->mover.get();
  } else if (const auto left = std::ranges::find_if(leaving_,
                                                    [&](const Leaving& leaving) {
                                                      return leaving.number == number &&
                                                             leaving.mover->is_nic() == is_nic;
                                                    });
             left != leaving_.end()) {
    mover = left->mover.get();
  }
  if (mover != nullptr && mover->is_nic() == is_nic) {
    mover->OnEnd(context, code);
  }
}

void Pairs::LeaveMover(Pair& pair) {
  if (pair.mover != nullptr) {
    pair.mover->Leave();
    leaving_.push_back({pair.number(), std::move(pair.mover)});
  }
}

void Pairs::MoveBySoftware(Pair& pair, bool is_agreed) {
  LeaveMover(pair);
  pair.mover =
      std::make_unique<SoftwareMover>(pair, static_cast<PairKeeper&>(*this), network_, is_agreed);
  Watch(pair);
}

// Once a receive is started. Returns 1 if it is decided, or has failed.
uint32_t Pairs::Decide(Pair& pair) {
  if (pair.is_send()) {
    return 0;
  }
  if (const ErrorCode code = pair.starts.Refresh(/*is_idle=*/true); code != ErrorCode::kOk) {
    OnBroken(pair, code);
    return 1;
  }
  if (pair.starts.Made() == 0) {
    return 0;
  }
  uint32_t nic = 0;
  const ErrorCode code = nics_.Choose(pair.rank->job->RouteTo(pair.plan.peer).link->peer,
                                      pair.rank->nearest_rail, &nic);
  if (code == ErrorCode::kWouldBlock) {
    return 0;
  }
  if (code != ErrorCode::kOk || !MoveByNic(pair, nic)) {
    MoveBySoftware(pair);
  }
  return 1;
}

bool Pairs::MoveByNic(Pair& pair, uint32_t nic) {
  progress::Job* const job = pair.rank->job;
  const progress::Link& link = *job->RouteTo(pair.plan.peer).link;
  DeferredNic* const found = nics_.Find(nic, link.peer);
  if (link.failure != ErrorCode::kOk || found == nullptr) {
    return false;
  }
  pair.mover = std::make_unique<NicMover>(pair, static_cast<PairKeeper&>(*this), *found, link.peer,
                                          reinterpret_cast<uint64_t>(job),
                                          deferred_rules_.WeightOf(job->plan.owner));
  return true;
}

void Pairs::RefuseNic(const Pair& pair) {
  network_.Post(pair, progress::PacketKind::kPairNic,
                progress::WirePairNic{pair.plan.peer_number, 0, 0, /*refused=*/1, 0});
}

void Pairs::OnNicOpen(Pair& pair, NicPlace place) {
  network_.Post(pair, progress::PacketKind::kPairNic,
                progress::WirePairNic{pair.plan.peer_number, place.key, place.address,
                                      /*refused=*/0, NicOf(pair)->nic().index});
}

void Pairs::OnNicRefused(Pair& pair) {
  MoveBySoftware(pair);
  if (pair.is_send()) {
    RefuseNic(pair);
  }
}

// ---- Rounds and ends ----------------------------------------------------------------------------

void Pairs::OnRounds(Pair& pair, uint64_t rounds) {
  if (pair.mover->is_nic()) {
    if (pair.is_send()) {
      shm::Statistics(pair.rank->session->layout()->counters)
          .AddShared(shm::Statistic::kMatchedByNic, rounds - pair.rounds);
    }
    pair.seen = rounds;  // its starts are the NIC's
  }
  if (pair.is_device()) {
    device_direct_ += rounds - pair.rounds;
  }
  pair.rounds = rounds;
  for (Pair* const follower : pair.followers) {
    Watch(*follower);
  }
  Wake(pair);
  if (pair.error == ErrorCode::kOk && pair.rounds >= pair.last_round) {
    if (pair.tells_end) {
      PostEnd(pair, ErrorCode::kInvalidRequest, pair.rounds);
    }
    Fail(pair, pair.last_error);
  }
}

void Pairs::Fail(Pair& pair, ErrorCode error) {
  if (pair.error != ErrorCode::kOk) {
    return;
  }
  pair.error = error;
  pair.deadline_ns = UINT64_MAX;
  if (pair.mover != nullptr) {
    pair.mover->OnFailed();
  }
  pair.done.Fail(error);
  Wake(pair);
  for (Pair* const follower : pair.followers) {
    EndAfter(*follower, pair.rounds, error);
  }
}

// For a reason of this side that the other one cannot know.
void Pairs::OnBroken(Pair& pair, ErrorCode error) {
  if (pair.error == ErrorCode::kOk) {
    PostEnd(pair, error, 0);
  }
  Fail(pair, error);
}

// The rank, or its stream, after a change of `done`. Should the stream be missed, since not all
// such changes are sequentially consistent, it looks within a millisecond by itself.
void Pairs::Wake(const Pair& pair) {
  pair.rank->delivery.wake().Publish();
  shm::WakeWaiting(*pair.layout);
}

void Pairs::SetDeadline(Pair& pair, uint64_t deadline_ns, ErrorCode error) {
  pair.deadline_ns = deadline_ns;
  pair.late_error = error;
  next_deadline_ns_ = std::min(next_deadline_ns_, deadline_ns);
}

uint32_t Pairs::FailLate() {
  uint32_t failed = 0;
  next_deadline_ns_ = UINT64_MAX;
  for (const auto& [number, pair] : pairs_) {
    if (network_.now_ns >= pair->deadline_ns) {
      pair->deadline_ns = UINT64_MAX;
      OnBroken(*pair, pair->late_error);
      ++failed;
    }
    next_deadline_ns_ = std::min(next_deadline_ns_, pair->deadline_ns);
  }
  return failed;
}

// ---- A turn -------------------------------------------------------------------------------------

void Pairs::Watch(Pair& pair) {
  if (!pair.watched) {
    pair.watched = true;
    watched_.push_back(&pair);
  }
}

void Pairs::WatchArmed() {
  for (auto& [rank, mine] : by_rank_) {
    const uint64_t armed = shm::LoadAcquire(rank->session->layout()->pairs_armed);
    if (armed == mine.armed_seen) {
      continue;
    }
    mine.armed_seen = armed;
    for (Pair* pair : mine.pairs) {
      if (pair->is_armed()) {
        Watch(*pair);
      }
    }
  }
}

// Returns true if the next turn has to look at the pair again.
bool Pairs::IsDue(const Pair& pair) {
  return pair.mover != nullptr ? pair.mover->IsDue() : pair.is_armed();
}

uint32_t Pairs::Advance(uint64_t now_ns) {
  network_.now_ns = now_ns;
  uint32_t done = nics_.Poll(*this, now_ns);
  if (pairs_.empty() && leaving_.empty()) {
    return done;
  }
  WatchArmed();
  size_t kept = 0;
  for (size_t i = 0; i < watched_.size(); ++i) {
    Pair& pair = *watched_[i];
    if (!pair.knows_follows && pair.error == ErrorCode::kOk &&
        shm::LoadAcquire(pair.layout->armed) != 0) {  // pairs with the rank's: its words are there
      ReadFollows(pair);
    }
    if (pair.mover != nullptr) {
      done += pair.mover->Advance(now_ns);
    } else if (pair.error == ErrorCode::kOk) {
      done += Decide(pair);
    }
    pair.watched = IsDue(pair);
    if (pair.watched) {
      watched_[kept++] = &pair;
    }
  }
  watched_.resize(kept);
  if (now_ns >= next_deadline_ns_) {
    done += FailLate();
  }
  if (!leaving_.empty()) {
    std::erase_if(leaving_, [](const Leaving& leaving) { return leaving.mover->TryEnd(); });
  }
  return done;
}

uint64_t Pairs::next_ns() const {
  return std::min(next_deadline_ns_, nics_.NextNs(network_.now_ns));
}

bool Pairs::is_armed() const {
  return any_newly_armed() || std::ranges::any_of(watched_, [](const Pair* pair) {
           // A send that waits for the receiver's word is told of it.
           return !(pair->mover == nullptr && pair->is_send()) && pair->is_armed();
         });
}

bool Pairs::any_newly_armed() const {
  return std::ranges::any_of(by_rank_, [](const auto& entry) {
    const auto& [rank, mine] = entry;
    return shm::Load(rank->session->layout()->pairs_armed, std::memory_order_seq_cst) !=
           mine.armed_seen;
  });
}

}  // namespace ferry::daemon
