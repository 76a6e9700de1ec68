// Ends of ranks and nodes, cut links, and what follows from them in a core: operations that fail,
// ranks that are told, links that are used no more; and the return of nodes that were cut off.
//
// Part of ProgressCore. Calling thread: the progress thread. Nothing blocks.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "common/error_code.h"
#include "internode/core/arrivals.h"
#include "internode/core/core_state.h"
#include "internode/core/rank_commands.h"
#include "internode/delivery/directory.h"

namespace ferry::progress {

class CoreEnds {
 public:
  // `state` outlives it.
  explicit CoreEnds(CoreState& state) : state_(state) {}
  CoreEnds(const CoreEnds&) = delete;
  CoreEnds& operator=(const CoreEnds&) = delete;

  // ---- What the home says: daemon/plane/data_plane.h documents the calls that it has, too
  void RankEnded(const std::string& job_id, uint32_t rank, ErrorCode error);
  // Of several ranks, of which those here hear together.
  struct RankEnd {
    uint32_t rank = 0;
    ErrorCode error = ErrorCode::kOk;
  };
  void RanksEnded(const std::string& job_id, std::span<const RankEnd> ends);
  void NodeFailed(uint64_t number, ErrorCode error);
  void NodeReturned(const std::string& job_id, uint32_t node);
  void PoisonJob(const std::string& job_id, ErrorCode error);
  // Ends the job on this node, after its worker process has gone or was given up.
  void FailWorker(const std::string& job_id, ErrorCode error, const std::string& text);

  // ---- Two ranks that begin anew with each other
  // The ranks have lost a direct link, of which this core knows nothing, and with it perhaps
  // messages. Their operations with each other by this core fail, too, as after a cut of their
  // nodes; but other ranks do not notice, and the link between the nodes goes on. So older packets
  // may still come: they are dropped until the other node has sent its last one (kParted).
  //
  // PartRanks comes first, then AreParted until it has returned true once.
  void PartRanks(const std::string& job_id, uint32_t rank, uint32_t peer);
  bool AreParted(const std::string& job_id, uint32_t rank, uint32_t peer);
  bool AreRejoined(const std::string& job_id, uint32_t rank, uint32_t peer);
  void TryJoin(ServedRank& rank, uint32_t peer);

  // ---- What the core's turns and other nodes say
  void OnTrouble(const Arrivals::Trouble& trouble);
  // Ends a rank that has broken the protocol, or a limit.
  void EndRank(ServedRank& rank, ErrorCode error, const std::string& text);
  void Execute(ServedRank& accuser, const RankCommands::Verdict& verdict);
  void ReportLinksDown();
  // Ends what this node has under way with a rank that is gone.
  void EndWork(Job& job, uint32_t rank, ErrorCode error);
  // EndWork, and tells the ranks here.
  void RankDied(Job& job, uint32_t rank, ErrorCode error);
  void ReturnNode(Job& job, uint32_t node);
  void AnnounceLeaves();
  // Returns when AnnounceLeaves is due; UINT64_MAX: no rank has left.
  uint64_t next_leaves_ns() const { return next_leaves_ns_; }

  // Tells one node of the end of a rank here.
  void TellOfEnd(Job& job, uint32_t rank, ErrorCode error, uint32_t node);
  // Returns true once the job's ranks here have left the last cut behind them: each has acted on
  // it, and the daemon has read all commands that the rank had written until then.
  static bool HaveSettled(const Job& job);

 private:
  static bool HasSettled(ServedRank& rank);
  void BreakLink(Link& link, const std::string& text);
  void FailLink(Link& link, ErrorCode error);
  void RankLeft(Job& job, uint32_t rank);
  void TellNodes(Job& job, uint32_t rank, ErrorCode error);
  void MarkDead(Job& job, uint32_t rank, ErrorCode error);
  void AnnounceDeaths(Job& job);
  void AnnounceDeath(ServedRank& rank);

  CoreState& state_;
  uint64_t leaves_told_ns_ = 0;
  uint64_t next_leaves_ns_ = UINT64_MAX;  // time at which to report ranks that have left
};

}  // namespace ferry::progress
