#include "internode/core/core_ends.h"

#include <algorithm>
#include <utility>

#include "shm/atomic.h"

namespace ferry::progress {
namespace {

// That many nanoseconds lie between two announcements of ranks that have left.
constexpr uint64_t kLeavesTogetherNs = 10'000'000;

}  // namespace

// ------------------------------------------------------------------------------------------- ranks

void CoreEnds::RankEnded(const std::string& job_id, uint32_t rank, ErrorCode error) {
  const RankEnd end{rank, error};
  RanksEnded(job_id, {&end, 1});
}

void CoreEnds::RanksEnded(const std::string& job_id, std::span<const RankEnd> ends) {
  Job* job = state_.directory.FindJob(job_id);
  if (job == nullptr) {
    return;
  }
  bool has_any_died = false;
  for (const auto& [rank, error] : ends) {
    if (!job->IsRank(rank)) {
      continue;
    }
    if (error == ErrorCode::kNotFound) {
      RankLeft(*job, rank);
    } else if (job->ended[rank] != error) {  // its node may have said so already
      if (job->IsLocal(rank)) {
        TellNodes(*job, rank, error);
      }
      MarkDead(*job, rank, error);
      has_any_died = true;
    }
  }
  if (has_any_died) {
    AnnounceDeaths(*job);
  }
}

// Other nodes are told first, over the link that everything takes: so what ranks here say to others
// because of it, such as that they give up a collective, comes after it.
void CoreEnds::RankDied(Job& job, uint32_t rank, ErrorCode error) {
  MarkDead(job, rank, error);
  AnnounceDeaths(job);
}

// Tells those that still wait for the rank, or they would wait for ever. Messages that it has sent
// count, so the news goes behind them: inside the node its messages lie in the others' lanes
// already, and other nodes are told over the link that its messages took.
void CoreEnds::RankLeft(Job& job, uint32_t rank) {
  job.left[rank] = true;
  const Route& route = job.RouteTo(rank);
  if (!job.IsLocal(rank) && !route.was_cut && route.link != nullptr) {
    return;
  }
  MarkDead(job, rank, ErrorCode::kNotFound);
  job.has_untold_leaves = true;
  next_leaves_ns_ = std::max(state_.now_ns, leaves_told_ns_ + kLeavesTogetherNs);
  if (job.IsLocal(rank)) {
    TellNodes(job, rank, ErrorCode::kNotFound);
  }
}

void CoreEnds::TellNodes(Job& job, uint32_t rank, ErrorCode error) {
  for (uint32_t node = 0; node < job.routes.size(); ++node) {
    TellOfEnd(job, rank, error, node);
  }
}

void CoreEnds::TellOfEnd(Job& job, uint32_t rank, ErrorCode error, uint32_t node) {
  if (const uint32_t there = job.any_rank_of[node]; node != job.plan.node && job.IsRank(there)) {
    state_.outbound.Post(job, PacketKind::kEnded, rank, there,
                         WireEnded{static_cast<uint32_t>(error), 0}, state_.now_ns);
  }
}

// Announces leaves together. The ranks of a job leave one after the other, and none urgently needs
// to know: to wake each for every other one would make the end of large jobs long.
void CoreEnds::AnnounceLeaves() {
  for (const auto& [id, job] : state_.directory.jobs()) {
    if (std::exchange(job->has_untold_leaves, false)) {
      AnnounceDeaths(*job);
    }
  }
  leaves_told_ns_ = state_.now_ns;
  next_leaves_ns_ = UINT64_MAX;
}

void CoreEnds::EndWork(Job& job, uint32_t rank, ErrorCode error) {
  job.ended[rank] = error;
  job.early.erase(rank);
  if (error == ErrorCode::kLinkDown) {
    for (auto& [destination, messages] : job.early) {
      std::erase_if(messages,
                    [rank](const Message& message) { return message.descriptor.source == rank; });
    }
  }
  state_.rndv_gets.FailWith(&job, rank, error, state_.now_ns);
  state_.staged_sends.OnPeerEnded(job, rank, state_.now_ns);
  state_.rndv_puts.FailWith(
      &job, rank, error == ErrorCode::kNotFound ? ErrorCode::kPeerDied : error, state_.now_ns);
  state_.rndv_puts.ForgetNotes(job, rank);
  state_.one_sided.FailWith(job, rank, error);
  if (state_.extension != nullptr) {
    state_.extension->FailTo(job, rank, error);
  }
  job.ForEachServed([&](ServedRank& served) {
    if (served.rank() != rank) {
      served.delivery.ForgetRtsOf(rank);
      if (error == ErrorCode::kLinkDown) {
        served.delivery.DropWaitingOf(rank);
      }
    }
  });
}

void CoreEnds::MarkDead(Job& job, uint32_t rank, ErrorCode error) {
  EndWork(job, rank, error);
  if (!state_.tells_deaths()) {
    job.ForEachServed([](ServedRank& served) { served.last_stale_command.reset(); });
    state_.hooks.on_rank_ended(job.plan.job_id, rank, error);
    return;
  }
  job.ForEachServed([&](ServedRank& served) {
    if (served.rank() != rank) {
      if (error == ErrorCode::kLinkDown) {
        // Pairs with PeerEnds::ForgetCredits.
        shm::FetchAdd(served.by_rank.rtrs[rank].cuts, 1U, std::memory_order_release);
      }
      served.by_rank.StoreDead(rank, error);
    }
  });
}

void CoreEnds::AnnounceDeaths(Job& job) {
  if (state_.tells_deaths()) {
    job.ForEachServed([this](ServedRank& served) { AnnounceDeath(served); });
  }
}

void CoreEnds::AnnounceDeath(ServedRank& rank) {
  shm::Wake& wake = rank.delivery.wake();
  // Pairs with PeerEnds::HasNews: the dead words are visible once the epoch is.
  rank.cut_epoch = shm::FetchAdd(wake.layout()->death_epoch, 1, std::memory_order_release) + 1;
  rank.last_stale_command.reset();
  wake.Publish();
  if (wake.MustAttend()) {
    rank.Attend();
  }
}

// The accuser reads that lane no more. If the proof is gone (something writes there at random), or
// never was, no rank is ended for it, but the two count as dead to each other: neither waits for
// ever.
void CoreEnds::Execute(ServedRank& accuser, const RankCommands::Verdict& verdict) {
  if (verdict.guilty) {
    EndRank(*verdict.accused, ErrorCode::kCorrupt, verdict.text);
    return;
  }
  const auto mark = [this](ServedRank& rank, uint32_t peer) {
    rank.by_rank.StoreDead(peer, ErrorCode::kPeerDied);
    AnnounceDeath(rank);
  };
  mark(accuser, verdict.accused->rank());
  mark(*verdict.accused, accuser.rank());
}

// --------------------------------------------------------------------------------- links and nodes

void CoreEnds::NodeFailed(uint64_t number, ErrorCode error) {
  if (Link* link = state_.directory.FindLink(number); link != nullptr) {
    FailLink(*link, error);
    state_.directory.SweepLinks(
        [this](transport::PeerId peer) { (void)state_.transport->RemovePeer(peer); });
  }
}

void CoreEnds::FailLink(Link& link, ErrorCode error) {
  // A node that was cut off may turn out to be dead.
  if (link.failure != ErrorCode::kOk && link.failure != ErrorCode::kLinkDown) {
    return;
  }
  link.failure = error == ErrorCode::kOk ? ErrorCode::kNodeUnreachable : error;
  link.frame.clear();
  link.waiting.clear();
  link.waiting_bytes = 0;
  state_.transport->FailPeer(link.peer, link.failure);
  state_.landings.EndOf(link, link.failure, state_.now_ns);
  for (const auto& [id, job] : state_.directory.jobs()) {
    bool any = false;
    for (uint32_t rank = 0; rank < job->plan.size(); ++rank) {
      Route& route = job->RouteTo(rank);
      if (route.link == &link) {
        state_.rndv_puts.FailWith(job.get(), rank, link.failure, state_.now_ns);
        state_.rndv_puts.ForgetNotes(*job, rank);
        state_.rtrs.OnLinkFailed(*job, rank, link.failure, state_.now_ns);
      }
      const ErrorCode ended = job->ended[rank];
      if (route.link == &link && (ended == ErrorCode::kOk || ended == ErrorCode::kLinkDown) &&
          ended != link.failure) {
        route.was_cut |= link.failure == ErrorCode::kLinkDown;
        MarkDead(*job, rank, link.failure);
        any = true;
      }
    }
    if (any) {
      AnnounceDeaths(*job);
    }
  }
}

void CoreEnds::ReportLinksDown() {
  bool is_any_unused = false;
  for (const auto& [number, link] : state_.directory.links()) {
    if (!link->broken || link->failure != ErrorCode::kOk) {
      continue;
    }
    if (link->routes == 0) {  // no job uses it: the next job takes another link
      FailLink(*link, ErrorCode::kLinkDown);
      is_any_unused = true;
    } else {
      BreakLink(*link, link->trouble.empty() ? state_.transport->LastError() : link->trouble);
    }
  }
  if (is_any_unused) {
    state_.directory.SweepLinks(
        [this](transport::PeerId peer) { (void)state_.transport->RemovePeer(peer); });
  }
}

// Nothing is sent by it until the home has judged it.
void CoreEnds::BreakLink(Link& link, const std::string& text) {
  link.broken = true;
  if (std::exchange(link.reported, true)) {
    return;
  }
  if (state_.hooks.on_link_down) {
    state_.hooks.on_link_down(link.number, ErrorCode::kLinkDown, text);
  } else {
    FailLink(link, ErrorCode::kNodeUnreachable);
  }
}

bool CoreEnds::HaveSettled(const Job& job) {
  return std::all_of(job.rank_of_local.begin(), job.rank_of_local.end(), [&job](uint32_t rank) {
    ServedRank* const served = job.served[rank];
    return served == nullptr || served->ended || HasSettled(*served);
  });
}

bool CoreEnds::HasSettled(ServedRank& rank) {
  // Pairs with PeerEnds::ApplyDeaths.
  const uint32_t applied = shm::LoadAcquire(rank.session->layout()->deaths_applied);
  if (static_cast<int32_t>(applied - rank.cut_epoch) < 0) {
    return false;
  }
  if (!rank.last_stale_command) {
    rank.last_stale_command = *rank.commands.HeadWord() + rank.commands.Backlog();
  }
  return *rank.commands.HeadWord() >= *rank.last_stale_command;
}

void CoreEnds::NodeReturned(const std::string& job_id, uint32_t node) {
  Job* job = state_.directory.FindJob(job_id);
  if (job == nullptr || node >= job->routes.size()) {
    return;
  }
  ReturnNode(*job, node);
}

// Its ranks hear of it before they get anything that the node sends: one that has a message of
// after a cut can answer it.
void CoreEnds::ReturnNode(Job& job, uint32_t node) {
  job.routes[node].is_returning = false;
  if (std::exchange(job.routes[node].is_opening, false)) {
    for (const uint32_t rank : job.rank_of_local) {
      if (job.left[rank]) {  // while nothing could be sent there
        TellOfEnd(job, rank, ErrorCode::kNotFound, node);
      }
    }
  }
  bool has_any_returned = false;
  for (uint32_t rank = 0; rank < job.plan.size(); ++rank) {
    if (job.plan.node_of_rank[rank] != node || job.ended[rank] != ErrorCode::kLinkDown) {
      continue;
    }
    has_any_returned = true;
    if (job.left[rank]) {  // its node does not say so again
      MarkDead(job, rank, ErrorCode::kNotFound);
      continue;
    }
    job.ended[rank] = ErrorCode::kOk;
    job.ForEachServed([&](ServedRank& served) {
      served.partings.erase(rank);
      if (state_.tells_deaths()) {
        served.by_rank.StoreDead(rank, ErrorCode::kOk);
      }
    });
  }
  if (has_any_returned) {
    AnnounceDeaths(job);
  }
}

// ----------------------------------------------------------------------- two ranks that begin anew

void CoreEnds::PartRanks(const std::string& job_id, uint32_t rank, uint32_t peer) {
  ServedRank* served = state_.directory.FindServed(job_id, rank);
  if (served == nullptr || served->ended || !served->job->IsRank(peer) ||
      served->job->IsLocal(peer) || served->job->ended[peer] != ErrorCode::kOk ||
      std::exchange(served->partings[peer].is_here, true)) {
    return;
  }
  constexpr ErrorCode kError = ErrorCode::kLinkDown;
  state_.rndv_gets.FailBetween(served, peer, kError, state_.now_ns);
  state_.staged_sends.FailBetween(*served, peer, kError, state_.now_ns);
  state_.rndv_puts.FailBetween(served, peer, kError, state_.now_ns);
  served->notes.erase(peer);
  state_.rtrs.FailBetween(*served, peer, kError, state_.now_ns);
  state_.one_sided.FailBetween(*served, peer, kError);
  served->delivery.ForgetRtsOf(peer);
  served->delivery.DropWaitingOf(peer);
  // As in MarkDead: pairs with PeerEnds::ForgetCredits.
  shm::FetchAdd(served->by_rank.rtrs[peer].cuts, 1U, std::memory_order_release);
  served->by_rank.StoreDead(peer, kError);
  AnnounceDeath(*served);
}

// A rank that is gone, or whose peer is, has nothing to notice.
bool CoreEnds::AreParted(const std::string& job_id, uint32_t rank, uint32_t peer) {
  ServedRank* served = state_.directory.FindServed(job_id, rank);
  if (served == nullptr || served->ended || !served->IsPartedFrom(peer)) {
    return true;
  }
  if (!HasSettled(*served)) {
    return false;
  }
  if (!std::exchange(served->partings[peer].is_told, true)) {
    state_.outbound.Post(*served->job, PacketKind::kParted, rank, peer,
                         WireEnded{static_cast<uint32_t>(ErrorCode::kLinkDown), 0}, state_.now_ns);
    TryJoin(*served, peer);
  }
  return true;
}

// Each node joins the two as soon as both have said their last words. So whatever one of them sends
// then comes to a rank that can answer: the word of the other one went before it.
void CoreEnds::TryJoin(ServedRank& rank, uint32_t peer) {
  const auto parting = rank.partings.find(peer);
  if (!parting->second.is_here || !parting->second.is_told || !parting->second.is_there) {
    return;
  }
  rank.partings.erase(parting);
  if (rank.job->ended[peer] == ErrorCode::kOk) {
    rank.by_rank.StoreDead(peer, ErrorCode::kOk);
    AnnounceDeath(rank);
  }
}

bool CoreEnds::AreRejoined(const std::string& job_id, uint32_t rank, uint32_t peer) {
  ServedRank* served = state_.directory.FindServed(job_id, rank);
  if (served != nullptr && served->job->IsRank(peer) &&
      served->job->ended[peer] != ErrorCode::kOk) {
    served->partings.erase(peer);  // neither node sends more packets of the two
  }
  return served == nullptr || !served->IsPartedFrom(peer);
}

// ------------------------------------------------------------------------------------------ faults

void CoreEnds::PoisonJob(const std::string& job_id, ErrorCode error) {
  Job* job = state_.directory.FindJob(job_id);
  if (job == nullptr) {
    return;
  }
  job->ForEachServed([error](ServedRank& served) { served.delivery.wake().Poison(error); });
}

void CoreEnds::FailWorker(const std::string& job_id, ErrorCode error, const std::string& text) {
  if (Job* job = state_.directory.FindJob(job_id); job != nullptr) {
    OnTrouble({job, nullptr, error, text});
  }
}

void CoreEnds::OnTrouble(const Arrivals::Trouble& trouble) {
  if (trouble.rank != nullptr) {
    EndRank(*trouble.rank, trouble.error, trouble.text);
    return;
  }
  if (state_.options.nodes_are_ranks) {  // they make no other trouble
    BreakLink(*trouble.job->RouteTo(trouble.source).link, trouble.text);
    return;
  }
  trouble.job->ForEachServed([](ServedRank& served) {
    served.ended = true;
    served.claim.Drop();  // others may wait behind it
  });
  PoisonJob(trouble.job->plan.job_id, trouble.error);
  if (state_.hooks.on_job_failed) {
    state_.hooks.on_job_failed(trouble.job->plan.job_id, trouble.error, trouble.text);
  }
}

void CoreEnds::EndRank(ServedRank& rank, ErrorCode error, const std::string& text) {
  if (rank.ended) {
    return;
  }
  rank.ended = true;
  rank.claim.Drop();  // others may wait behind it
  rank.delivery.wake().Poison(error);
  if (state_.hooks.on_violation) {
    state_.hooks.on_violation(rank.session->job_id, rank.rank(), text);
  }
}

}  // namespace ferry::progress
