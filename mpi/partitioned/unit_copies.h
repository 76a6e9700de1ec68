// UnitCopies: the data of units that NodeUnits carries out: where they lie, and how they move.
//
// A unit is cut into chunks that ranks claim one by one. A chunk is a part of a block, of one rank
// or combined from all, for one rank or for all.
//
// Calling thread: one at a time. Nothing blocks but copies, while they copy.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "coll/problem.h"
#include "mpi/coll/collective_operation.h"
#include "mpi/partitioned/peer.h"
#include "shm/layout/descriptor.h"

namespace ferry::mpi {

class UnitCopies {
 public:
  // A row of blocks of one size at equal distances, or a single block.
  struct Row {
    shm::Location first{};
    uint64_t stride_bytes = 0;
    uint64_t is_there = 0;  // 0: there is none
  };
  // A rank's buffers of a unit: its contribution (one block for each rank, or one for all), and the
  // place of its result (one block of each rank, or one in all).
  struct Buffers {
    Row contribution;
    Row result;
  };

  // Of rank `self` of `size`. The operations, one for each unit, outlive this.
  UnitCopies(int self, int size, std::vector<CollectiveOperation*> operations)
      : self_(self), size_(size), operations_(std::move(operations)) {}

  // Returns the size of the blocks; all ranks get one value, whichever blocks each of them knows.
  static uint64_t BlockBytesOf(const collective::Problem& problem);
  // Returns the size of a row from its first byte to its last.
  uint64_t SpanOf(uint64_t stride_bytes, uint32_t unit) const;
  // The index in arrays with one entry for each rank of each unit.
  size_t IndexOf(uint32_t unit, int rank) const {
    return size_t{unit} * static_cast<size_t>(size_) + static_cast<size_t>(rank);
  }

  // `buffers` of all ranks, by IndexOf, outlive this. Then each rank's memory is made known, by
  // UseOwn or OpenPeer.
  void Begin(const Buffers* buffers);
  void UseOwn(uint32_t unit, std::byte* contribution, std::byte* result);
  // `peer`: the rank's number in the job. False: some of its memory is out of reach.
  bool OpenPeer(uint32_t unit, int rank, uint32_t peer);

  uint64_t Chunks(uint32_t unit) const { return Blocks() * ChunksOfBlock(unit); }
  // Moves a chunk. *peer: the rank with whose memory that has failed.
  ErrorCode Move(uint32_t unit, uint64_t chunk, int* peer);

 private:
  struct Memory {
    std::byte* mapped = nullptr;  // in this process; null: the kernel copies
    PeerData data;                // another rank's
  };
  struct Reached {
    Memory contribution;
    Memory result;
  };
  // The work of one chunk: bytes of a block, of one rank or combined from all (`from` is kAll), for
  // one rank or all that get results (`to` is kAll).
  static constexpr int kAll = -1;
  struct Part {
    uint32_t unit;
    int from;
    int to;
    uint64_t at;
    uint64_t bytes;
  };

  const Reached& MemoryOf(uint32_t unit, int rank) const { return memory_[IndexOf(unit, rank)]; }
  const Buffers& BuffersOf(uint32_t unit, int rank) const { return buffers_[IndexOf(unit, rank)]; }
  const collective::Problem& problem(uint32_t unit) const { return operations_[unit]->problem; }
  uint64_t ChunkBytes(uint32_t unit) const;
  uint64_t ChunksOfBlock(uint32_t unit) const;
  uint64_t Blocks() const;
  Part PartOf(uint32_t unit, uint64_t chunk) const;
  bool IsReceiver(const Part& part, int rank) const;
  uint64_t ContributedAt(const Part& part, int rank) const;
  uint64_t ResultAt(const Part& part, int rank) const;
  ErrorCode Find(const Part& part, int rank, std::byte* room, const std::byte** found) const;
  std::byte* TargetOf(const Part& part) const;
  ErrorCode Combine(const Part& part, const std::byte** result, int* peer);

  const int self_;
  const int size_;
  const std::vector<CollectiveOperation*> operations_;
  const Buffers* buffers_ = nullptr;
  std::vector<Reached> memory_;
  // Two buffers for operands, of a chunk each.
  std::array<std::unique_ptr<std::byte[]>, 2> rooms_;
};

}  // namespace ferry::mpi
