// NodeUnits: units of a partitioned collective whose ranks share a node, carried out in the ranks'
// own memory.
//
// Once every rank has readied a unit, all contributions are in memory, and all results may be
// stored. The rank that readies the unit last sees that, and carries it out for all: combines the
// contributions in the order of ranks, and stores the results where they belong. Ranks that look
// meanwhile take a share: a unit is cut into chunks, which are claimed one by one. So no rank has
// to call the library for another one's result, and ranks may ready their units in any order.
// Alltoall and reduce_scatter in place do not go this way, since their results would overwrite
// contributions that other ranks still read.
//
// The ranks share a block of words in the first one's heap. Counters of a unit only grow, by the
// same in each round, as those of units.h do. The ranks make the block together, at the first
// start, by two allgathers. Until these are over no rank knows whether units go this way, so all
// units wait. UnitCopies moves the data.
//
// Failure. A rank that cannot do its part marks the unit as failed, and still adds to its counters,
// so that the others see the failure at the end. After the death of a rank the others end the unit
// once no living rank is at work in their memory.
//
// Calling thread: one at a time. Nothing blocks but copies, while they copy; BeginSetup and Step
// may block on the daemon.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "coll/messenger.h"
#include "coll/runner.h"
#include "mpi/coll/channel.h"
#include "mpi/coll/collective_operation.h"
#include "mpi/comm/comm.h"
#include "mpi/partitioned/blocks.h"
#include "mpi/partitioned/unit_copies.h"

namespace ferry::mpi {

class NodeUnits {
 public:
  // How many of the channel's numbers it takes.
  static constexpr uint32_t kNumbers = 2;
  // Returns true if units like `first` may go this way. All ranks get one answer.
  static bool MayServe(const Comm& comm, Channel& channel, uint32_t units,
                       const CollectiveOperation& first);
  // `first_number`: the first of kNumbers, which the allgathers use. The channel and the operations
  // outlive this.
  NodeUnits(Channel* channel, uint32_t first_number, std::vector<CollectiveOperation*> operations);
  ~NodeUnits();
  NodeUnits(const NodeUnits&) = delete;
  NodeUnits& operator=(const NodeUnits&) = delete;

  // True before the first start, which calls BeginSetup.
  bool is_new() const { return state_ == State::kNew; }
  void BeginSetup();
  // Goes on with the setup. Returns true once it is over; then is_used says whether units go this
  // way. All ranks get one answer.
  bool Step();
  bool is_used() const { return state_ == State::kUsed; }

  // Begins a unit that this rank has readied in this round. `can`: the rank has its whole
  // contribution.
  void Begin(uint32_t unit, uint64_t round, bool can);
  // Carries the unit on. Returns true if the unit is over; *failure says how it ended.
  bool Advance(uint32_t unit, uint64_t round, collective::RunFailure* failure);

 private:
  enum class State { kNew, kMeets, kReports, kUsed, kUnused };
  // The data of one rank in the allgathers of the setup.
  struct Card {
    uint64_t is_ready = 0;
    uint64_t has_private = 0;  // the kernel must copy to and from some of its buffers
    uint64_t mark = 0;         // equal on ranks whose calls belong together
    shm::Location block{};     // the words, in the first rank's heap
  };
  struct Cards {
    Card own;
    std::vector<Card> all;
  };
  struct alignas(64) UnitWords {
    uint64_t readied;  // each rank adds to it when it has readied the unit
    uint64_t claimed;  // a rank adds to it before it carries a chunk out
    uint64_t done;     // and to this one after it
    uint64_t failed;   // the last round in which a rank could not do its part
  };
  struct alignas(64) RankWords {
    uint64_t works;  // 1: the rank may be reading and writing other ranks' memory
  };
  // The beginning of the block. Then come RankWords, UnitWords, and the Buffers of all ranks for
  // one unit after the other.
  struct alignas(64) Head {
    uint64_t left;  // ranks that do not use the block any more
    uint64_t
        dead;  // a dead rank, from 1 on, above the 32 bits of its error; 0: no dead rank is known
  };
  // A Row of this rank, by its addresses in this process.
  struct OwnRow {
    std::byte* first = nullptr;
    uint64_t stride_bytes = 0;
    bool is_there = false;
    bool is_even = true;  // false: the distances are not equal, so it is no row
  };

  using Row = UnitCopies::Row;
  using Buffers = UnitCopies::Buffers;

  int self() const { return channel_.self(); }
  int size() const { return channel_.size(); }
  uint32_t units() const { return static_cast<uint32_t>(operations_.size()); }
  static uint64_t BlockBytes(uint32_t units, int size);
  Head& head() const { return *static_cast<Head*>(static_cast<void*>(shared_)); }
  RankWords& RankAt(int rank) const;
  UnitWords& UnitAt(uint32_t unit) const;
  Buffers& BuffersOf(uint32_t unit, int rank) const;
  static collective::Problem ProblemOfAll(const Channel& channel,
                                          const collective::Problem& problem);
  OwnRow RowOf(void* base, const std::function<size_t(int)>& offset) const;
  OwnRow ContributionIn(const CollectiveOperation& operation) const;
  OwnRow ResultIn(const CollectiveOperation& operation) const;
  const collective::Problem& problem(uint32_t unit) const { return operations_[unit]->problem; }

  // Setup.
  std::vector<Buffers> Locate(Card* card) const;
  uint64_t Mark() const;
  void Meet(uint32_t number);
  bool DoAgree() const;
  bool Enter();
  bool OpenPeer(uint32_t unit, int rank);
  void Settle(bool is_used, bool is_open);

  // Carrying out.
  void CarryOut(uint32_t unit, uint64_t chunk, uint64_t round, collective::RunFailure* failure);
  void Tell(int ranks) const;
  void Fail(uint32_t unit, uint64_t round) const;
  bool HasDied();
  bool IsLeftBehind(uint32_t unit, uint64_t round, collective::RunFailure* failure) const;
  void NoteDeath(int rank, ErrorCode how) const;
  collective::RunFailure WhyOthersFailed() const;

  Channel& channel_;
  const uint32_t first_number_;
  const std::vector<CollectiveOperation*> operations_;
  State state_ = State::kNew;
  std::unique_ptr<collective::CollectiveRun> meeting_;
  std::unique_ptr<Cards> cards_ = std::make_unique<Cards>();
  std::vector<Buffers> own_buffers_;
  Block block_;                        // the first rank's
  std::shared_ptr<std::byte> mapped_;  // the others'
  std::byte* shared_ = nullptr;        // either
  UnitCopies copies_;
  std::vector<bool> is_open_;  // by unit: all its memory was found
  uint32_t looks_ = 0;
  int dead_ = -1;  // a rank that has died or left
  ErrorCode how_ = ErrorCode::kOk;
};

}  // namespace ferry::mpi
