// ProgressCore: ranks and nodes that go. See progress_core.h.
#include <algorithm>
#include <utility>

#include "internode/core/progress_core.h"
#include "shm/atomic.h"

namespace ferry::progress {
namespace {

// That many nanoseconds lie between two announcements of ranks that have left.
constexpr uint64_t kLeavesTogetherNs = 10'000'000;

}  // namespace

void ProgressCore::RankEnded(const std::string& job_id, uint32_t rank, ErrorCode error) {
  Job* job = directory_.FindJob(job_id);
  if (job == nullptr || !job->IsRank(rank)) {
    return;
  }
  if (error == ErrorCode::kNotFound) {
    RankLeft(*job, rank);
  } else if (job->ended[rank] != error) {  // its node may have said so already
    if (job->IsLocal(rank)) {
      TellNodes(*job, rank, error);
    }
    RankDied(*job, rank, error);
  }
}

// Other nodes are told first, over the link that everything takes: so what ranks here say to others
// because of it, such as that they give up a collective, comes after it.
void ProgressCore::RankDied(Job& job, uint32_t rank, ErrorCode error) {
  MarkDead(job, rank, error);
  AnnounceDeaths(job);
}

// Tells those that still wait for the rank, or they would wait for ever. Messages that it has sent
// count, so the news goes behind them: inside the node its messages lie in the others' lanes
// already, and other nodes are told over the link that its messages took.
void ProgressCore::RankLeft(Job& job, uint32_t rank) {
  job.left[rank] = true;
  if (!job.IsLocal(rank) && !job.RouteTo(rank).was_cut) {
    return;
  }
  MarkDead(job, rank, ErrorCode::kNotFound);
  job.has_untold_leaves = true;
  next_leaves_ns_ = std::max(now_ns_, leaves_told_ns_ + kLeavesTogetherNs);
  if (job.IsLocal(rank)) {
    TellNodes(job, rank, ErrorCode::kNotFound);
  }
}

void ProgressCore::TellNodes(Job& job, uint32_t rank, ErrorCode error) {
  for (uint32_t node = 0; node < job.routes.size(); ++node) {
    TellOfEnd(job, rank, error, node);
  }
}

void ProgressCore::TellOfEnd(Job& job, uint32_t rank, ErrorCode error, uint32_t node) {
  const auto& nodes = job.plan.node_of_rank;
  const auto found = std::find(nodes.begin(), nodes.end(), node);
  if (node != job.plan.node && found != nodes.end()) {
    const auto any_rank_there = static_cast<uint32_t>(found - nodes.begin());
    outbound_.Post(job, PacketKind::kEnded, rank, any_rank_there,
                   WireEnded{static_cast<uint32_t>(error), 0}, now_ns_);
  }
}

// Announces leaves together. The ranks of a job leave one after the other, and none urgently needs
// to know: to wake each for every other one would make the end of large jobs long.
void ProgressCore::AnnounceLeaves() {
  for (const auto& [id, job] : directory_.jobs()) {
    if (std::exchange(job->has_untold_leaves, false)) {
      AnnounceDeaths(*job);
    }
  }
  leaves_told_ns_ = now_ns_;
  next_leaves_ns_ = UINT64_MAX;
}

// Ends what the daemon has under way with a rank that is gone.
void ProgressCore::EndWork(Job& job, uint32_t rank, ErrorCode error) {
  job.ended[rank] = error;
  job.early.erase(rank);
  if (error == ErrorCode::kLinkDown) {
    for (auto& [destination, messages] : job.early) {
      std::erase_if(messages,
                    [rank](const Message& message) { return message.descriptor.source == rank; });
    }
  }
  rndv_gets_.FailWith(&job, rank, error, now_ns_);
  staged_sends_.OnPeerEnded(job, rank, now_ns_);
  rndv_puts_.FailWith(&job, rank, error == ErrorCode::kNotFound ? ErrorCode::kPeerDied : error,
                      now_ns_);
  rndv_puts_.ForgetNotes(job, rank);
  one_sided_.FailWith(job, rank, error);
  if (extension_ != nullptr) {
    extension_->FailTo(job, rank, error);
  }
  for (ServedRank* served : job.served) {
    if (served != nullptr && served->rank() != rank) {
      served->delivery.ForgetRtsOf(rank);
      if (error == ErrorCode::kLinkDown) {
        served->delivery.DropWaitingOf(rank);
      }
    }
  }
}

void ProgressCore::MarkDead(Job& job, uint32_t rank, ErrorCode error) {
  EndWork(job, rank, error);
  if (!tells_deaths()) {
    for (ServedRank* served : job.served) {
      if (served != nullptr) {
        served->last_stale_command.reset();
      }
    }
    hooks_.on_rank_ended(job.plan.job_id, rank, error);
    return;
  }
  for (ServedRank* served : job.served) {
    if (served != nullptr && served->rank() != rank) {
      if (error == ErrorCode::kLinkDown) {
        // Pairs with PeerEnds::ForgetCredits.
        shm::FetchAdd(served->session->layout()->rtrs[rank].cuts, 1U, std::memory_order_release);
      }
      // Pairs with PeerEnds::DeathOf and the acquire of death_epoch.
      shm::StoreRelease(served->session->layout()->peers[rank].dead, static_cast<uint32_t>(error));
    }
  }
}

void ProgressCore::AnnounceDeaths(Job& job) {
  for (ServedRank* served : job.served) {
    if (served != nullptr && tells_deaths()) {
      AnnounceDeath(*served);
    }
  }
}

void ProgressCore::AnnounceDeath(ServedRank& rank) {
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
void ProgressCore::Execute(ServedRank& accuser, const RankCommands::Verdict& verdict) {
  if (verdict.guilty) {
    EndRank(*verdict.accused, ErrorCode::kCorrupt, verdict.text);
    return;
  }
  const auto mark = [this](ServedRank& rank, uint32_t peer) {
    // Pairs with PeerEnds::ApplyDeaths.
    shm::StoreRelease(rank.session->layout()->peers[peer].dead,
                      static_cast<uint32_t>(ErrorCode::kPeerDied));
    AnnounceDeath(rank);
  };
  mark(accuser, verdict.accused->rank());
  mark(*verdict.accused, accuser.rank());
}

void ProgressCore::NodeFailed(uint64_t number, ErrorCode error) {
  if (Link* link = directory_.FindLink(number); link != nullptr) {
    FailLink(*link, error);
    directory_.SweepLinks([this](transport::PeerId peer) { (void)transport_->RemovePeer(peer); });
  }
}

void ProgressCore::FailLink(Link& link, ErrorCode error) {
  // A node that was cut off may turn out to be dead.
  if (link.failure != ErrorCode::kOk && link.failure != ErrorCode::kLinkDown) {
    return;
  }
  link.failure = error == ErrorCode::kOk ? ErrorCode::kNodeUnreachable : error;
  link.frame.clear();
  link.waiting.clear();
  link.waiting_bytes = 0;
  transport_->FailPeer(link.peer, link.failure);
  landings_.EndOf(link, link.failure, now_ns_);
  for (const auto& [id, job] : directory_.jobs()) {
    bool any = false;
    for (uint32_t rank = 0; rank < job->plan.size(); ++rank) {
      Route& route = job->RouteTo(rank);
      if (route.link == &link) {
        rndv_puts_.FailWith(job.get(), rank, link.failure, now_ns_);
        rndv_puts_.ForgetNotes(*job, rank);
        rtrs_.OnLinkFailed(*job, rank, link.failure, now_ns_);
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

void ProgressCore::ReportBrokenLinks() {
  bool is_any_unused = false;
  for (const auto& [number, link] : directory_.links()) {
    if (!link->broken || link->failure != ErrorCode::kOk) {
      continue;
    }
    if (link->routes == 0) {  // no job uses it: the next job takes another link
      FailLink(*link, ErrorCode::kLinkDown);
      is_any_unused = true;
    } else {
      BreakLink(*link, link->trouble.empty() ? transport_->LastError() : link->trouble);
    }
  }
  if (is_any_unused) {
    directory_.SweepLinks([this](transport::PeerId peer) { (void)transport_->RemovePeer(peer); });
  }
}

// Nothing is sent by it until the home has judged it.
void ProgressCore::BreakLink(Link& link, const std::string& text) {
  link.broken = true;
  if (std::exchange(link.reported, true)) {
    return;
  }
  if (hooks_.on_link_lost) {
    hooks_.on_link_lost(link.number, ErrorCode::kLinkDown, text);
  } else {
    FailLink(link, ErrorCode::kNodeUnreachable);
  }
}

void ProgressCore::PoisonJob(const std::string& job_id, ErrorCode error) {
  Job* job = directory_.FindJob(job_id);
  if (job == nullptr) {
    return;
  }
  for (ServedRank* served : job->served) {
    if (served != nullptr) {
      served->delivery.wake().Poison(error);
    }
  }
}

void ProgressCore::FailWorker(const std::string& job_id, ErrorCode error, const std::string& text) {
  if (Job* job = directory_.FindJob(job_id); job != nullptr) {
    OnTrouble({job, nullptr, error, text});
  }
}

void ProgressCore::OnTrouble(const Arrivals::Trouble& trouble) {
  if (trouble.rank != nullptr) {
    EndRank(*trouble.rank, trouble.error, trouble.text);
    return;
  }
  if (options_.nodes_are_ranks) {  // they make no other trouble
    BreakLink(*trouble.job->RouteTo(trouble.source).link, trouble.text);
    return;
  }
  for (ServedRank* served : trouble.job->served) {
    if (served != nullptr) {
      served->ended = true;
      served->claim.Drop();  // others may wait behind it
    }
  }
  PoisonJob(trouble.job->plan.job_id, trouble.error);
  if (hooks_.on_job_failed) {
    hooks_.on_job_failed(trouble.job->plan.job_id, trouble.error, trouble.text);
  }
}

void ProgressCore::EndRank(ServedRank& rank, ErrorCode error, const std::string& text) {
  if (rank.ended) {
    return;
  }
  rank.ended = true;
  rank.claim.Drop();  // others may wait behind it
  rank.delivery.wake().Poison(error);
  if (hooks_.on_violation) {
    hooks_.on_violation(rank.session->job_id, rank.rank(), text);
  }
}

}  // namespace ferry::progress
