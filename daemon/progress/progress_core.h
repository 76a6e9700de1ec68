// All that the progress thread does, without the thread: one Turn moves everything that can move.
//
// Owns the transport, the staging memory, copy workers and streams, and what is known of jobs,
// ranks and nodes. Single-threaded: the progress thread makes every call (other threads go through
// its mailbox). Time is passed in. Nothing blocks.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "daemon/faults/faults.h"
#include "daemon/pairs/pairs.h"
#include "daemon/pairs/rings.h"
#include "daemon/plane/data_plane.h"
#include "daemon/plane/worker_client.h"
#include "daemon/progress/adverts.h"
#include "daemon/progress/arrivals.h"
#include "daemon/progress/feeds.h"
#include "daemon/progress/one_sided.h"
#include "daemon/progress/pulls.h"
#include "daemon/progress/puts.h"
#include "daemon/progress/rank_commands.h"
#include "daemon/registration/registrar.h"
#include "daemon/registration/registrations.h"
#include "daemon/staging/copy_pool.h"
#include "daemon/staging/device_copier.h"
#include "daemon/staging/staging_depot.h"
#include "daemon/trace/tracer.h"
#include "daemon/traffic/directory.h"
#include "daemon/traffic/outbound.h"
#include "transports/api/transport.h"

namespace ferry::daemon {

struct CoreOptions {
  uint64_t staging_block_bytes = 256 << 10;
  uint32_t staging_blocks = 16;       // at most
  uint32_t staging_least_blocks = 0;  // see StagingShape
  StagingRules staging;
  uint32_t copy_workers = 1;
  // For device memory that only streams reach; null: ranks stage by themselves.
  std::shared_ptr<gpu::GpuSource> gpus;
  uint64_t device_block_bytes = 1 << 20;
  uint32_t device_blocks = 16;
  uint32_t device_least_blocks = 0;
  PipelineRules pipeline;
  uint64_t operation_timeout_ns = 10'000'000'000;
  uint64_t max_parked_bytes = 256 << 20;  // of one rank
  RegistrationCache::Limits registrations;
  uint64_t registration_piece_bytes = 64 << 20;
  SettleMemory settle_staging;  // may be empty
  DeferredRules deferred_work;
  Faults* faults = nullptr;  // null: none
};

class ProgressCore final : private transport::CompletionSink, private CopySink {
 public:
  // `ring` (any thread) ends a sleep; everything that it refers to outlives this.
  static StatusOr<std::unique_ptr<ProgressCore>> Create(
      const CoreOptions& options, std::unique_ptr<transport::Transport> transport, PlaneHooks hooks,
      std::function<void()> ring);
  ~ProgressCore() override;

  // Returns how much was done; 0 = nothing to do.
  uint32_t Turn(uint64_t now_ns);

  // Whether messages from other nodes came in the last turn.
  bool received() const { return received_; }
  // Whether devices asked for so much in the last turn that there is more by now.
  bool is_asked() const { return is_asked_; }

  // Before a sleep: tells every rank to ring its doorbell from now on, then looks once more. False:
  // there is something to do. Wake ends it.
  bool PrepareToSleep();
  void Wake();
  // Whether large messages are, or may soon be, on their way to or from here, or devices use rings.
  bool HasTransfers() const;
  // The bytes of those that move in one piece: no turn sees any of a message until all of it is
  // there.
  uint64_t transfer_bytes() const { return pairs_.transfer_bytes(); }
  // When to turn again even if nothing rings; UINT64_MAX = never.
  uint64_t NextTurnNs(uint64_t now_ns) const;
  const transport::Transport& transport() const { return *transport_; }

  // As in DataPlane.
  Status AddJob(const JobPlan& plan);
  void RemoveJob(const std::string& job_id);
  Status CheckSession(const Session& session) { return directory_.CheckSession(session); }
  // After CheckSession.
  void AddSession(std::shared_ptr<Session> session, const WorkerSeat& seat,
                  uint32_t nearest_rail = 0);
  Status AddRegion(const std::string& job_id, uint32_t rank, std::shared_ptr<const Region> region);
  Status AddPair(const PairPlan& plan);
  void EndPair(const PairName& name, uint64_t rounds, ErrorCode error) {
    pairs_.End(name, rounds, error);
  }
  void RemovePair(const PairName& name) { pairs_.Remove(name); }
  Status AddNode(const std::string& job_id, uint32_t node, const NodeRoute& route);
  void NodeReturned(const std::string& job_id, uint32_t node);
  void RankEnded(const std::string& job_id, uint32_t rank, ErrorCode error);
  void NodeFailed(uint64_t number, ErrorCode error);
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
  // Whether the registrar has something to pin, or to say.
  bool is_pinning() const { return registrar_.pending() != 0; }

  // -1 when there is none.
  int DoorbellOf(const std::string& job_id, uint32_t rank);
  // Removals take several turns: true once it is done (or there is nothing of that name). Until the
  // deadline a session's last commands are sent (then, or after that, *says_no_more is set);
  // afterwards memory that the NIC does not let go of is kept for it.
  bool TryRemoveSession(const std::string& job_id, uint32_t rank, uint64_t deadline_ns,
                        bool* says_no_more);
  // `unpinned` is let go of, soon after that, when the memory may be used for something else.
  bool TryRemoveRegion(const std::string& job_id, uint32_t rank, uint32_t region,
                       uint64_t deadline_ns, const std::shared_ptr<UnpinSignal>& unpinned);

 private:
  ProgressCore(const CoreOptions& options, std::unique_ptr<transport::Transport> transport,
               PlaneHooks hooks, std::function<void()> ring);

  // transport::CompletionSink.
  void OnReceive(transport::PeerId sender, std::span<const std::byte> message) override;
  void OnComplete(uint64_t context, ErrorCode code) override;
  // CopySink.
  void OnCopied(const CopyTask& task) override;
  void OnCopiedForGood(const CopyTask& task);

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
  bool HaveSettled(const Job& job) const;
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
  const PlaneHooks hooks_;
  uint64_t now_ns_ = 0;
  uint64_t polled_ns_ = 0;
  bool received_ = false;
  bool is_asked_ = false;
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
  const std::shared_ptr<CopyPool> copies_;             // for the jobs of our own user
  const std::shared_ptr<DeviceCopier> device_copies_;  // for those, too; null without a GPU
  Outbound outbound_;
  Pulls pulls_;
  Feeds feeds_;
  Adverts adverts_;
  Puts puts_;
  OneSided one_sided_;
  Pairs pairs_;
  Rings rings_;
  RankCommands commands_;
  Arrivals arrivals_;
};

}  // namespace ferry::daemon
