// Units of a partitioned collective whose ranks share a node, carried out in the ranks' own memory.
//
// Once every rank has readied a unit, all that it needs lies there, and all results may be stored.
// Whoever readies it last sees that, and carries it out for all: combines the contributions in the
// order of ranks, and stores the results where they belong. Ranks that look meanwhile take a share:
// a unit is cut into chunks, which are claimed one by one. So no rank has to come by for another
// one's result, and ranks may ready their units in any order. Not of alltoall and reduce_scatter in
// place, whose results lie where others still read.
//
// The ranks share a block of words in the first one's heap. Counters of a unit only grow, by the
// same in each round, as those of units.h do. They make it together, at the first start, by two
// allgathers; until then nobody knows whether units go this way, and they wait.
//
// Failure. Whoever cannot do its part says so in the unit, and counts on: the others see it in the
// end. Where a rank has died the others end the unit once none of them is at work in their memory.
//
// Calling thread: one at a time. Nothing blocks but copies, while they copy; BeginSetup and Step
// may block on the daemon.
#pragma once

#include <array>
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
#include "mpi/partitioned/peer.h"

namespace ferry::mpi {

class NodeUnits {
 public:
  // How many numbers of the channel's it takes.
  static constexpr uint32_t kNumbers = 2;
  // Whether units like `first` may go this way; the same on all ranks.
  static bool MayServe(const Comm& comm, Channel& channel, uint32_t units,
                       const CollectiveOperation& first);
  // `first_number` of kNumbers: those of the allgathers. The channel and the operations outlive it.
  NodeUnits(Channel* channel, uint32_t first_number, std::vector<CollectiveOperation*> operations);
  ~NodeUnits();
  NodeUnits(const NodeUnits&) = delete;
  NodeUnits& operator=(const NodeUnits&) = delete;

  // At the first start.
  bool is_new() const { return state_ == State::kNew; }
  void BeginSetup();
  // Returns whether it is known how units go; then is_used says it. The same on all ranks.
  bool Step();
  bool is_used() const { return state_ == State::kUsed; }

  // This rank has readied the unit in this round. `can`: it has what it needs for that.
  void Begin(uint32_t unit, uint64_t round, bool can);
  // Does what there is to do. Returns whether the unit is over, and how.
  bool Advance(uint32_t unit, uint64_t round, collective::RunFailure* failure);

 private:
  enum class State { kNew, kMeets, kReports, kUsed, kUnused };
  // What ranks tell each other.
  struct Card {
    uint64_t is_ready = 0;
    uint64_t has_private = 0;  // some of its buffers are reached by the kernel's copies only
    uint64_t mark = 0;         // the same on ranks whose calls belong together
    shm::Location block{};     // the first one's
  };
  struct Cards {
    Card own;
    std::vector<Card> all;
  };
  // Where blocks of one size, or the only one, lie in equal distances.
  struct Row {
    shm::Location first{};
    uint64_t stride_bytes = 0;
    uint64_t is_there = 0;  // 0: there is none
  };
  // A rank's part of a unit: what it contributes (for each rank, or the same for all), and where
  // its result goes (of each rank, or one).
  struct Buffers {
    Row contribution;
    Row result;
  };
  struct alignas(64) UnitWords {
    uint64_t readied;  // by each rank, when it has readied the unit
    uint64_t claimed;  // by whoever carries a chunk out
    uint64_t done;     // likewise, after it
    uint64_t failed;   // the last round in which somebody could not do its part
  };
  struct alignas(64) RankWords {
    uint64_t works;  // 1: it may be reading and writing others' memory
  };
  // Then come RankWords, UnitWords, and the Buffers of all ranks for one unit after the other.
  struct alignas(64) Head {
    uint64_t left;  // ranks that do not use the block any more
    uint64_t
        dead;  // a rank that has died, from 1 on, above 32 bits of how; 0: none, as far as known
  };
  struct Memory {
    std::byte* mapped = nullptr;  // in this process; null: the kernel copies
    PeerData data;                // another rank's
  };
  struct Reached {
    Memory contribution;
    Memory result;
  };
  // What is done at once: bytes of a block, from one rank or of all combined, for one rank or all
  // that get results.
  static constexpr int kAll = -1;
  struct Part {
    uint32_t unit;
    int from;
    int to;
    uint64_t at;
    uint64_t bytes;
  };
  // The same memory, in this process.
  struct OwnRow {
    std::byte* first = nullptr;
    uint64_t stride_bytes = 0;
    bool is_there = false;
    bool is_even = true;  // false: it is none
  };

  int self() const { return channel_.self(); }
  int size() const { return channel_.size(); }
  uint32_t units() const { return static_cast<uint32_t>(operations_.size()); }
  static uint64_t BlockBytes(uint32_t units, int size);
  Head& head() const { return *static_cast<Head*>(static_cast<void*>(shared_)); }
  RankWords& RankAt(int rank) const;
  UnitWords& UnitAt(uint32_t unit) const;
  Buffers& BuffersOf(uint32_t unit, int rank) const;
  // Of what is kept for each rank of each unit.
  size_t IndexOf(uint32_t unit, int rank) const {
    return size_t{unit} * static_cast<size_t>(size()) + static_cast<size_t>(rank);
  }
  const Reached& MemoryOf(uint32_t unit, int rank) const { return memory_[IndexOf(unit, rank)]; }
  static uint64_t BlockBytesOf(const collective::Problem& problem);
  static collective::Problem ProblemOfAll(const Channel& channel,
                                          const collective::Problem& problem);
  OwnRow RowOf(void* base, const std::function<size_t(int)>& offset) const;
  OwnRow ContributionIn(const CollectiveOperation& operation) const;
  OwnRow ResultIn(const CollectiveOperation& operation) const;
  uint64_t SpanOf(uint64_t stride_bytes, uint32_t unit) const;
  const collective::Problem& problem(uint32_t unit) const { return operations_[unit]->problem; }
  uint64_t ChunkBytes(uint32_t unit) const;
  uint64_t ChunksOfBlock(uint32_t unit) const;
  uint64_t Blocks() const;
  uint64_t Chunks(uint32_t unit) const { return Blocks() * ChunksOfBlock(unit); }
  Part PartOf(uint32_t unit, uint64_t chunk) const;

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
  bool IsReceiver(const Part& part, int rank) const;
  uint64_t ContributedAt(const Part& part, int rank) const;
  uint64_t ResultAt(const Part& part, int rank) const;
  ErrorCode Find(const Part& part, int rank, std::byte* room, const std::byte** found) const;
  std::byte* TargetOf(const Part& part) const;
  ErrorCode Combine(const Part& part, const std::byte** result, int* peer);
  ErrorCode Move(const Part& part, int* peer);
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
  std::vector<Reached> memory_;
  std::vector<bool> is_open_;  // by unit: all its memory was found
  // For operands, a chunk each.
  std::array<std::unique_ptr<std::byte[]>, 2> rooms_;
  uint32_t looks_ = 0;
  int dead_ = -1;  // a rank that has died
  ErrorCode how_ = ErrorCode::kOk;
};

}  // namespace ferry::mpi
