// The work of a progress thread, without the thread: one Turn moves everything that can move.
//
// A core owns the transport, the staging memory, and the records of jobs, ranks and nodes.
// Single-threaded: one thread at a time, named the progress thread, makes every call. The caller
// passes the time. Nothing blocks.
//
// A core's home is the process in which it runs: ferryd, for many ranks (daemon/progress), or a
// rank, for itself. The home gives the core
// - CoreParts: a transport. ferryd adds copiers, and pairs and rings as an extension; a rank adds
//   itself as a Home, whose private memory is reached and whose engine is let match at once.
// - CoreOptions: a rank has no staging (staging_blocks = 0) and pushes (push_max_bytes).
// - CoreHooks: functions that the core calls with news. In a rank, ferryd alone says which ranks
//   are gone: so on_rank_ended is set there, and tells the engine that the path to that rank is
//   lost.
// - A job: AddJob with a JobPlan. In a rank each rank is a node of its own: node_of_rank[r] = r,
//   node = its own, local_size = the true one.
// - The ranks that it serves: AddSession with their segments and a Seat. In a rank: itself, by
//   LinkSeat, with ServedSegments that release their mappings at the end.
// - Regions: AddRegion, before a command or an arrival names one; TryRemoveRegion until it is true.
// - Ways: AddNode for each node (in a rank: for each direct link, whose NodeRoute::link is the
//   peer's number and whose life grows). NodeFailed ends one: operations under way by it fail, and
//   the news of that lies in the ranks' lanes after the next Turn. After a cut the same link
//   may come back in its next life: AddNode until it is not kWouldBlock, then NodeReturned.
// - Turns: Turn whenever something may have come. It returns 0 when it has done nothing: go on as
//   long as it pays, then sleep: PrepareToSleep, wait for Transport::WaitFd and the ranks' bells,
//   no longer than
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
  // The data of an RTS of up to this size are sent behind it if its rank allows that; 0: none are.
  uint64_t push_max_bytes = 0;
  // Each other node is one rank of the job, and not a daemon: only a rank's packets are accepted
  // from it, and its mistakes cost that rank its link, and other ranks nothing.
  bool nodes_are_ranks = false;
  RegistrationCache::Limits registrations;
  uint64_t registration_piece_bytes = 64 << 20;
  // Injects a fault when a copy between a rank and a stage has ended: calls `go_on`, now or later,
  // with the copy or a changed one. Empty: no faults.
  std::function<void(const CopyTask& copied, std::function<void(const CopyTask&)> go_on)>
      copy_fault;
};

// The objects that a home makes for its core.
struct CoreParts {
  std::unique_ptr<transport::Transport> transport;
  // Copiers between stages and private memory, or device memory that only streams reach, of ranks
  // whose RankCare names no copier. Null: there is none.
  std::shared_ptr<Copier> copies = nullptr;
  std::shared_ptr<Copier> device_copies = nullptr;
  MakeExtension extend = {};  // empty: there is no extension
  Home* home = nullptr;       // outlives the core; null: it reaches and matches nothing
};

// The helpers that look after a rank beside its core.
struct RankCare {
  AttentionPtr attention = nullptr;          // null: no thread matches while the rank computes
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

  // Returns true if messages from other nodes came in the last turn.
  bool received() const { return received_; }
  // Returns true if devices made so many requests in the last turn that more are waiting now.
  bool is_asked() const { return extension_ != nullptr && extension_->is_asked(); }

  // Before a sleep: tells every rank to ring its doorbell from now on, then looks once more. False:
  // there is something to do. Wake ends it.
  bool PrepareToSleep();
  void Wake();
  // Returns true if large messages are, or may soon be, on their way to or from this process, or if
  // devices use rings.
  bool HasTransfers() const;
  // Returns the bytes of large messages that move in one piece: no turn sees any byte of such a
  // message until all of it has arrived.
  uint64_t transfer_bytes() const {
    return extension_ == nullptr ? 0 : extension_->transfer_bytes();
  }
  // Returns the time of the next turn that is due even if nothing rings; UINT64_MAX = never.
  uint64_t NextTurnNs(uint64_t now_ns) const;
  const transport::Transport& transport() const { return *transport_; }

  // The calls that daemon/plane/data_plane.h has too are documented there.
  Status AddJob(const JobPlan& plan);
  void RemoveJob(const std::string& job_id);
  Status CheckSession(const ServedSegments& session) { return directory_.CheckSession(session); }
  // Starts serving a rank. To be called after CheckSession.
  void AddSession(std::shared_ptr<const ServedSegments> session, const Seat& seat,
                  RankCare care = {});
  // Adds a region of a served rank. Its `number` is not 0 and not in use yet. The core sets its
  // identity, except for the allocation, and its name.
  Status AddRegion(const std::string& job_id, uint32_t rank, ClaimableRegion memory);
  // Returns null for a rank that is not served here.
  ServedRank* FindServed(const std::string& job_id, uint32_t rank) {
    return directory_.FindServed(job_id, rank);
  }
  Status AddNode(const std::string& job_id, uint32_t node, const NodeRoute& route);
  void NodeReturned(const std::string& job_id, uint32_t node);
  // Do what the calls of transport::Transport do, for the link of that number (NodeRoute::link).
  void Connect(uint64_t number, uint64_t now_ns);
  ErrorCode ConnectionTo(uint64_t number, std::string* why);
  void RankEnded(const std::string& job_id, uint32_t rank, ErrorCode error);
  void NodeFailed(uint64_t number, ErrorCode error);
  // PartRanks comes first, then AreParted until it has returned true once.
  void PartRanks(const std::string& job_id, uint32_t rank, uint32_t peer);
  bool AreParted(const std::string& job_id, uint32_t rank, uint32_t peer);
  bool AreRejoined(const std::string& job_id, uint32_t rank, uint32_t peer);
  void PoisonJob(const std::string& job_id, ErrorCode error);
  // Ends the job on this node, after its worker process has gone or was given up.
  void FailWorker(const std::string& job_id, ErrorCode error, const std::string& text);
  std::vector<NicStatistics> Nics() const;
  // Any thread.
  RegistrationStatistics Registered() const { return registrations_.Statistics(); }
  Status StartTrace(TraceRing ring);
  StatusOr<TraceDump> StopTrace();
  RankReport Inspect(const std::string& job_id, uint32_t rank);
  bool Idle() const;
  // Returns true if no operation is open between the ranks here and that rank of another node, and
  // nothing waits to be sent to it.
  bool IsIdleWith(const std::string& job_id, uint32_t peer);
  // Returns true if one-sided operations of the ranks here with that one are under way.
  bool WantsOf(const std::string& job_id, uint32_t peer);
  // Returns true if the registrar has memory to pin, or results to report.
  bool is_pinning() const { return registrar_.pending() != 0; }

  // Removals take several turns: each call returns true once the removal is done (or there is
  // nothing of that name). Until the deadline a session's last commands are sent (then, or after
  // that, *says_no_more is set); afterwards memory that the NIC does not release is kept for it.
  bool TryRemoveSession(const std::string& job_id, uint32_t rank, uint64_t deadline_ns,
                        bool* says_no_more);
  // The core drops `unpinned`, soon after the removal, when the memory may be used for something
  // else.
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

  // Returns true if this core, and not CoreHooks::on_rank_ended, tells the ranks here which ranks
  // are gone.
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
  uint64_t next_leaves_ns_ = UINT64_MAX;  // time at which to report ranks that have left

  uint64_t regions_added_ = 0;

  Tracer tracer_;
  // The transport is destroyed first: until then it may hold memory of other members. Claims are
  // destroyed before the objects that they are on.
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
