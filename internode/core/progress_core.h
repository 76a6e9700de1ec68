// The work of a progress thread, without the thread: one Turn moves everything that can move.
//
// A core owns the transport, the staging memory, and the records of jobs, ranks and nodes.
// Single-threaded: one thread at a time, named the progress thread, makes every call. The caller
// passes the time. Nothing blocks. Its parts share one CoreState: CoreControl is what the control
// plane asks, CoreEnds the ends of ranks, nodes and links, RankCommands what ranks say, Arrivals
// what comes from other nodes.
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
//   no longer than until NextTurnNs, then Wake.
// - An end: TryRemoveSession until it is true, RemoveJob, and the destructor. A home that ends with
//   its rank may go without the first two.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "internode/core/arrivals.h"
#include "internode/core/core_control.h"
#include "internode/core/core_ends.h"
#include "internode/core/core_state.h"
#include "internode/core/rank_commands.h"
#include "internode/delivery/directory.h"
#include "internode/staging/copier.h"
#include "transports/api/transport.h"

namespace ferry::progress {

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
  bool is_asked() const { return state_.extension != nullptr && state_.extension->is_asked(); }

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
    return state_.extension == nullptr ? 0 : state_.extension->transfer_bytes();
  }
  // Returns the time of the next turn that is due even if nothing rings; UINT64_MAX = never.
  uint64_t NextTurnNs(uint64_t now_ns) const;
  const transport::Transport& transport() const { return *state_.transport; }

  CoreControl& control() { return control_; }
  const CoreControl& control() const { return control_; }
  CoreEnds& ends() { return ends_; }

 private:
  ProgressCore(const CoreOptions& options, CoreParts parts, CoreHooks hooks,
               std::function<void()> ring);

  // transport::CompletionSink.
  void OnReceive(transport::PeerId sender, std::span<const std::byte> message) override;
  transport::Landing OnHead(transport::PeerId sender, std::span<const std::byte> header,
                            uint64_t attachment_bytes) override;
  void OnLanded(uint64_t context, ErrorCode code) override;
  void OnComplete(uint64_t context, ErrorCode code) override;
  void OnConnectionEnded(transport::PeerId peer, bool lossless) override;
  ErrorCode Judged(ErrorCode code) const;
  // CopySink.
  void OnCopied(const CopyTask& task) override;
  void OnCopiedForGood(const CopyTask& task);

  uint32_t PollTransport();
  uint32_t TakeCommands(ServedRank& rank);
  uint32_t TellNews(ServedRank& rank);
  uint32_t TakeActivity(ServedRank& rank);
  void CheckDeadlines();

  CoreState state_;
  uint64_t polled_ns_ = 0;
  bool received_ = false;
  bool takes_commands_ = false;  // now
  uint64_t next_check_ns_ = 0;
  CoreEnds ends_;
  RankCommands commands_;
  Arrivals arrivals_;
  CoreControl control_;
};

}  // namespace ferry::progress
