// The board of a communicator's ranks that share a node: made by all of them together, and given
// back once all have left it.
//
// Calling thread: that of a collective on the communicator, one at a time. SetUp blocks, unless it
// is given Pauses.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "client/api/one_sided.h"
#include "coll/board/board.h"
#include "coll/board/board_run.h"
#include "coll/messages/front_link.h"
#include "mpi/coll/call_watch.h"
#include "mpi/comm/agree.h"
#include "mpi/comm/comm.h"
#include "mpi/comm/rank_set.h"

namespace ferry::mpi {

// Functions that a board whose collectives do not block calls in place of blocking; empty for other
// boards.
struct Pauses {
  std::function<void()> pause;
  std::function<bool()> may_spin;  // NodeLink::MaySpin
  std::function<bool()> is_awake;  // NodeLink::IsAwake
};

// The members' link, by libferry. Calling thread: see board/node_link.h.
class CommLink : public collective::FrontLink {
 public:
  // `world_ranks`: the members' ranks in the job.
  CommLink(std::vector<int> world_ranks, Pauses pauses);

  // Makes `watch`, which outlives this link, report long waits from now on. `board`: that of all
  // ranks, on which late ranks can be seen; null: there is none.
  void SetWatch(CallWatch* watch, const collective::Board* board) {
    watch_ = watch;
    board_ = board;
  }

  void WaitFor(bool (*done)(void*), void* argument) override;
  bool HasPauses() const override { return pauses_.pause != nullptr; }
  bool MaySpin() const override { return pauses_.may_spin(); }
  bool IsAwake() const override { return pauses_.is_awake(); }
  ErrorCode Spread(std::span<const collective::NodeAddress> blocks,
                   std::span<const collective::NodeAddress> places, size_t block_bytes) override;
  ErrorCode Reduce(std::span<const collective::NodeAddress> vectors,
                   std::span<const collective::MemberAddress> places, int self,
                   const gpu::Reduction& reduction) override;
  void* TakeStaging(size_t size_bytes) override;
  void GiveStaging(void* memory) override;
  collective::FailureText TextOf(ErrorCode error) override;

 private:
  client::RemoteAddress PlaceOf(int member, const collective::NodeAddress& address) const;
  std::vector<client::RemoteAddress> PlacesOf(
      std::span<const collective::NodeAddress> addresses) const;

  const Pauses pauses_;
  CallWatch* watch_ = nullptr;
  const collective::Board* board_ = nullptr;
};

class NodeBoard {
 public:
  // Makes a board of `members`, some or all of the communicator's ranks, which share this one's
  // node. Collective over them. Null on all of them if one could not take part, and on those to or
  // from which a message failed. `watch`, which outlives the board, reports long waits.
  static std::unique_ptr<NodeBoard> SetUp(const Comm& comm, const std::vector<int>& members,
                                          CallWatch* watch);
  // Makes a board of all ranks whose collectives do not block; nor does this function. Such boards
  // are made by messages of their own.
  static std::unique_ptr<NodeBoard> SetUp(const Comm& comm, Pauses pauses);
  ~NodeBoard();

  collective::Board& board() { return board_; }
  const collective::BoardLimits& limits() const { return limits_; }
  // Returns true if Run may carry the problem out; alike on all ranks.
  bool CanRun(const collective::Problem& problem) const { return CanRunOnBoard(problem, limits_); }
  // Carries the problem out, as the communicator's collective `number`. Blocks.
  collective::BoardResult Run(uint64_t number, const collective::Problem& problem,
                              const collective::Binding& binding, collective::RunFailure* failure) {
    return RunOnBoard(&board_, number, problem, binding, limits_, failure);
  }

 private:
  struct Memory {
    std::byte* own = nullptr;           // the first rank's: the memory itself
    std::shared_ptr<std::byte> mapped;  // the others'
    std::byte* get() const { return own != nullptr ? own : mapped.get(); }
  };
  // Facts that all ranks of the board agree on.
  struct Facts {
    bool crowded;
    bool reachable;
  };

  NodeBoard(std::vector<int> world_ranks, int self, Memory memory,
            const collective::BoardShape& shape, const Facts& facts, Pauses pauses);
  // `members`: the members of the line, as ranks of the world.
  static std::unique_ptr<NodeBoard> MakeTogether(const RankSet& members, Line* line, Pauses pauses);

  const Memory memory_;
  CommLink link_;
  collective::Board board_;
  const collective::BoardLimits limits_;
};

}  // namespace ferry::mpi
