// All that a progress thread does, without the thread: one Turn moves everything that can move.
//
// Owns the transport, the staging memory, and what is known of jobs, ranks and nodes.
// Single-threaded: one thread at a time makes every call, which we name the progress thread. Time
// is passed in. Nothing blocks.
//
// What a home gives. The process in which a core runs is its home: ferryd, for many ranks
// (daemon/progress), or a rank, for itself. It gives
// - CoreParts: a transport. ferryd adds copiers, and pairs and rings as an extension; a rank adds
//   itself as a Home, whose private memory is reached and whose engine is let match at once.
// - CoreOptions: a rank has no staging (staging_blocks = 0) and pushes (push_max_bytes).
// - CoreHooks: what is to be done about news. In a rank, ferryd alone tells who is gone: so
//   on_rank_ended is set there, and the engine is told that the path to that rank is lost.
// - A job: AddJob with a JobPlan. In a rank each rank is a node of its own: node_of_rank[r] = r,
//   node = its own, local_size = the true one.
// - The ranks that it serves: AddSession with their segments and a Seat. In a rank: itself, by
//   LinkSeat, with ServedSegments that release their mappings at the end.
// - Regions: AddRegion, before a command or an arrival names one; TryRemoveRegion until it is true.
// - Ways: AddNode for each node (in a rank: for each direct link, whose NodeRoute::link is the
//   peer's number and whose life grows). NodeFailed ends one: what is under way by it fails, and
//   what ranks are told of that lies in their lanes after the next Turn. After a cut the same link
//   may come back in its next life: AddNode until it is not kWouldBlock, then NodeReturned.
// - Turns: Turn whenever something may have come. 0: nothing was done; go on as long as it pays,
//   then sleep: PrepareToSleep, wait for Transport::WaitFd and the ranks' bells, no longer than
//   until NextTurnNs, then Wake.
// - An end: TryRemoveSession until it is true, RemoveJob, and the destructor. A home that ends with
//   its rank may go without the first two.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "internode/core/arrivals.h"
#include "internode/core/extension.h"
#include "internode/core/rank_commands.h"
#include "internode/delivery/attention.h"
#include "internode/delivery/core_hooks.h"
#include "internode/delivery/directory.h"
#include "internode/delivery/home.h"
#include "internode/delivery/job_plan.h"
#include "internode/delivery/outbound.h"
#include "internode/delivery/reports.h"
#include "internode/registration/registrar.h"
#include "internode/registration/registrations.h"
#include "internode/rma/one_sided.h"
#include "internode/rndv/eager_long_receive.h"
#include "internode/rndv/eager_long_send.h"
#include "internode/rndv/private_memory.h"
#include "internode/rndv/rndv_get.h"
#include "internode/rndv/rndv_put.h"
#include "internode/rndv/rndv_rtr.h"
#include "internode/rndv/rndv_staged.h"
#include "internode/session/served_segments.h"
#include "internode/staging/copier.h"
#include "internode/staging/staging_depot.h"
#include "internode/trace/tracer.h"
#include "transports/api/transport.h"

namespace ferry::progress {

struct CoreOptions {
  uint64_t staging_block_bytes = 256 << 10;
  uint32_t staging_blocks = 16;       // at most; 0: there is no staging
  uint32_t staging_least_blocks = 0;  // see StagingShape
  StagingRules staging;
  uint64_t device_block_bytes = 1 << 20;
  uint32_t device_blocks = 16;
  uint32_t device_least_blocks = 0;
  PipelineRules pipeline;
  uint64_t operation_timeout_ns = 10'000'000'000;
  uint64_t max_held_bytes = 256 << 20;  // for one rank, as Delivery counts
  // RTSs up to this have their data sent behind them if their rank says that it may be; 0: none.
  uint64_t push_max_bytes = 0;
  // Each other node is one rank of the job, and not a daemon: it is believed only what ranks say,
  // and what it does wrong costs it the link, and nobody else anything.
  bool nodes_are_ranks = false;
  RegistrationCache::Limits registrations;
  uint64_t registration_piece_bytes = 64 << 20;
  // A fault on purpose, when a copy between a rank and a stage has ended: calls `go_on`, now or
  // later, with what it makes of the copy. Empty: none.
  std::function<void(const CopyTask& copied, std::function<void(const CopyTask&)> go_on)>
      copy_fault;
};

// What a home makes for its core.
struct CoreParts {
  std::unique_ptr<transport::Transport> transport;
  // Those who copy between stages and private memory, or device memory that only streams reach, of
  // ranks whose seat names nobody else. Null: nobody does.
  std::shared_ptr<Copier> copies = nullptr;
  std::shared_ptr<Copier> device_copies = nullptr;
  MakeExtension extend = {};  // empty: there is no extension
  Home* home = nullptr;       // outlives the core; null: it reaches and matches nothing
};

// Who looks after a rank beside its core.
struct RankCare {
  AttentionPtr attention = nullptr;          // null: nobody matches while the rank computes
  std::shared_ptr<Copier> copier = nullptr;  // of the job; null: as CoreParts says
  uint32_t nearest_rail = 0;                 // transport::RmaRequest::rail
};

class ProgressCore final : private transport::CompletionSink, private CopySink {
 public:
  // `ring` (any thread) ends a sleep; everything that it refers to outlives this.
  static StatusOr<std::unique_ptr<ProgressCore>> Create(const CoreOptions& options, CoreParts parts,
                                                        CoreHooks hooks,
                                                        std::function<void()> ring);
  ~ProgressCore() override;

  // Returns how much was done; 0 = nothing to do.
  uint32_t Turn(uint64_t now_ns);

  // Whether messages from other nodes came in the last turn.
  bool received() const { return received_; }
  // Whether devices asked for so much in the last turn that there is more by now.
  bool is_asked() const { return extension_ != nullptr && extension_->is_asked(); }

  // Before a sleep: tells every rank to ring its doorbell from now on, then looks once more. False:
  // there is something to do. Wake ends it.
  bool PrepareToSleep();
  void Wake();
  // Whether large messages are, or may soon be, on their way to or from here, or devices use rings.
  bool HasTransfers() const;
  // The bytes of those that move in one piece: no turn sees any of a message until all of it is
  // there.
  uint64_t transfer_bytes() const {
    return extension_ == nullptr ? 0 : extension_->transfer_bytes();
  }
  // When to turn again even if nothing rings; UINT64_MAX = never.
  uint64_t NextTurnNs(uint64_t now_ns) const;
  const transport::Transport& transport() const { return *transport_; }

  // As in daemon/plane/data_plane.h, where that has them too.
  Status AddJob(const JobPlan& plan);
  void RemoveJob(const std::string& job_id);
  Status CheckSession(const ServedSegments& session) { return directory_.CheckSession(session); }
  // After CheckSession.
  void AddSession(std::shared_ptr<const ServedSegments> session, const Seat& seat,
                  RankCare care = {});
  // Its `number` is not 0 and not known yet; the core gives it its identity, but for the
  // allocation, and its name.
  Status AddRegion(const std::string& job_id, uint32_t rank, ClaimableRegion memory);
  // Null: it is not served here.
  ServedRank* FindServed(const std::string& job_id, uint32_t rank) {
    return directory_.FindServed(job_id, rank);
  }
  Status AddNode(const std::string& job_id, uint32_t node, const NodeRoute& route);
  void NodeReturned(const std::string& job_id, uint32_t node);
  // As transport::Transport says, of the way of that number (NodeRoute::link).
  void Connect(uint64_t number, uint64_t now_ns);
  ErrorCode ConnectionTo(uint64_t number, std::string* why);
  void RankEnded(const std::string& job_id, uint32_t rank, ErrorCode error);
  void NodeFailed(uint64_t number, ErrorCode error);
  // The first two are called in this order, the second until it is true, once.
  void PartRanks(const std::string& job_id, uint32_t rank, uint32_t peer);
  bool AreParted(const std::string& job_id, uint32_t rank, uint32_t peer);
  bool AreRejoined(const std::string& job_id, uint32_t rank, uint32_t peer);
  void PoisonJob(const std::string& job_id, ErrorCode error);
  // The job's worker process is gone, or was given up: the job cannot go on here.
  void FailWorker(const std::string& job_id, ErrorCode error, const std::string& text);
  std::vector<NicStatistics> Nics() const;
  // Any thread.
  RegistrationStatistics Registered() const { return registrations_.Statistics(); }
  Status StartTrace(TraceRing ring);
  StatusOr<TraceDump> StopTrace();
  RankReport Inspect(const std::string& job_id, uint32_t rank);
  bool Idle() const;
  // Whether nothing is open between the ranks here and that rank of another node, and nothing for
  // it waits to be sent.
  bool IsIdleWith(const std::string& job_id, uint32_t peer);
  // Whether one-sided operations of the ranks here with that one are under way.
  bool WantsOf(const std::string& job_id, uint32_t peer);
  // Whether the registrar has something to pin, or to say.
  bool is_pinning() const { return registrar_.pending() != 0; }

  // Removals take several turns: true once it is done (or there is nothing of that name). Until the
  // deadline a session's last commands are sent (then, or after that, *says_no_more is set);
  // afterwards memory that the NIC does not let go of is kept for it.
  bool TryRemoveSession(const std::string& job_id, uint32_t rank, uint64_t deadline_ns,
                        bool* says_no_more);
  // `unpinned` is let go of, soon after that, when the memory may be used for something else.
  bool TryRemoveRegion(const std::string& job_id, uint32_t rank, uint32_t region,
                       uint64_t deadline_ns, const std::shared_ptr<UnpinSignal>& unpinned);

 private:
  ProgressCore(const CoreOptions& options, CoreParts parts, CoreHooks hooks,
               std::function<void()> ring);

  // transport::CompletionSink.
  void OnReceive(transport::PeerId sender, std::span<const std::byte> message) override;
  transport::Landing OnHead(transport::PeerId sender, std::span<const std::byte> header,
                            uint64_t attachment_bytes) override;
  void OnLanded(uint64_t context, ErrorCode code) override;
  void OnComplete(uint64_t context, ErrorCode code) override;
  void OnPeerLost(transport::PeerId peer, bool lossless) override;
  ErrorCode Judged(ErrorCode code) const;
  // CopySink.
  void OnCopied(const CopyTask& task) override;
  void OnCopiedForGood(const CopyTask& task);

  // Whether the ranks here hear from this core who is gone (CoreHooks::on_rank_ended).
  bool tells_deaths() const { return !hooks_.on_rank_ended; }
  static NicStatistics CountsOf(const transport::Transport& rail);
  uint32_t PollTransport();
  uint32_t TakeCommands(ServedRank& rank);
  uint32_t TellNews(ServedRank& rank);
  void ReportLanded(ServedRank& rank);
  uint32_t TakeActivity(ServedRank& rank);
  void Execute(ServedRank& accuser, const RankCommands::Verdict& verdict);
  void OnTrouble(const Arrivals::Trouble& trouble);
  void EndRank(ServedRank& rank, ErrorCode error, const std::string& text);
  void ReportBrokenLinks();
  void BreakLink(Link& link, const std::string& text);
  void ReturnNode(Job& job, uint32_t node);
  void TryJoin(ServedRank& rank, uint32_t peer);
  static bool HasSettled(ServedRank& rank);
  static bool HaveSettled(const Job& job);
  void FailLink(Link& link, ErrorCode error);
  void RankLeft(Job& job, uint32_t rank);
  void RankDied(Job& job, uint32_t rank, ErrorCode error);
  void TellNodes(Job& job, uint32_t rank, ErrorCode error);
  void TellOfEnd(Job& job, uint32_t rank, ErrorCode error, uint32_t node);
  void AnnounceLeaves();
  void EndWork(Job& job, uint32_t rank, ErrorCode error);
  void MarkDead(Job& job, uint32_t rank, ErrorCode error);
  void AnnounceDeaths(Job& job);
  void AnnounceDeath(ServedRank& rank);
  void CheckDeadlines();
  TraceCounters Counters() const;
  bool Retire(ServedRank& rank, ServedRegion& region, uint64_t deadline_ns,
              const std::shared_ptr<UnpinSignal>& unpinned);

  const CoreOptions options_;
  const CoreHooks hooks_;
  uint64_t now_ns_ = 0;
  uint64_t polled_ns_ = 0;
  bool received_ = false;
  bool takes_commands_ = false;  // now
  uint64_t next_check_ns_ = 0;
  uint64_t leaves_told_ns_ = 0;
  uint64_t next_leaves_ns_ = UINT64_MAX;  // when to tell of ranks that have left

  uint64_t regions_added_ = 0;

  Tracer tracer_;
  // The transport goes first: until then it may hold memory of the others. The claims go before
  // what they are on.
  Registrations registrations_;
  Directory directory_;
  StagingDepot depot_;
  std::unique_ptr<transport::Transport> transport_;
  Registrar registrar_;
  Home* const home_;                      // may be null
  const std::shared_ptr<Copier> copies_;  // these two may be null
  const std::shared_ptr<Copier> device_copies_;
  Outbound outbound_;
  PrivateMemory private_memory_;
  RndvGets rndv_gets_;
  StagedSends staged_sends_;
  Pushes pushes_;
  Landings landings_;
  Rtrs rtrs_;
  RndvPuts rndv_puts_;
  OneSided one_sided_;
  const std::unique_ptr<Extension> extension_;  // may be null
  RankCommands commands_;
  Arrivals arrivals_;
};

}  // namespace ferry::progress
