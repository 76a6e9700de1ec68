#include "mpi/partitioned/unit_copies.h"

#include <algorithm>

#include "mpi/base/connection.h"
#include "shm/word_copy.h"

namespace ferry::mpi {
namespace {

using collective::Collective;
using collective::Problem;

// So small that operands stay in the second-level cache, and that ranks which look find a share.
constexpr uint64_t kChunkBytes = uint64_t{32} << 10;

}  // namespace

// The size of the blocks; all ranks get one value, whichever blocks each of them knows.
uint64_t UnitCopies::BlockBytesOf(const Problem& problem) {
  if (problem.has_blocks && !problem.receive_blocks.empty()) {
    return problem.receive_blocks[0].size_bytes;
  }
  return problem.has_blocks && !problem.send_blocks.empty() ? problem.send_blocks[0].size_bytes
                                                            : problem.block_bytes;
}

uint64_t UnitCopies::SpanOf(uint64_t stride_bytes, uint32_t unit) const {
  const uint64_t block_bytes = BlockBytesOf(problem(unit));
  return block_bytes == 0 ? 0 : stride_bytes * static_cast<uint64_t>(size_ - 1) + block_bytes;
}

// ---- Parts --------------------------------------------------------------------------------------

uint64_t UnitCopies::ChunkBytes(uint32_t unit) const {
  const uint64_t element = std::max<uint64_t>(problem(unit).element_bytes, 1);
  return std::max<uint64_t>(kChunkBytes / element, 1) * element;
}

uint64_t UnitCopies::ChunksOfBlock(uint32_t unit) const {
  const uint64_t bytes = ChunkBytes(unit);
  return std::max<uint64_t>((BlockBytesOf(problem(unit)) + bytes - 1) / bytes, 1);
}

// How many blocks of a unit move independently.
uint64_t UnitCopies::Blocks() const {
  const auto ranks = static_cast<uint64_t>(size_);
  switch (problem(0).collective) {
    case Collective::kAllgather:
    case Collective::kGather:
    case Collective::kScatter:
    case Collective::kReduceScatter:
      return ranks;
    case Collective::kAlltoall:
      return ranks * ranks;
    default:
      return 1;
  }
}

UnitCopies::Part UnitCopies::PartOf(uint32_t unit, uint64_t chunk) const {
  const uint64_t at = chunk % ChunksOfBlock(unit) * ChunkBytes(unit);
  Part part{unit, kAll, kAll, at, std::min(ChunkBytes(unit), BlockBytesOf(problem(unit)) - at)};
  const auto block = static_cast<int>(chunk / ChunksOfBlock(unit));
  const int root = problem(unit).root;
  switch (problem(unit).collective) {
    case Collective::kBcast:
      part.from = root;
      break;
    case Collective::kReduce:
      part.to = root;
      break;
    case Collective::kAllgather:
      part.from = block;
      break;
    case Collective::kGather:
      part.from = block;
      part.to = root;
      break;
    case Collective::kScatter:
      part.from = root;
      part.to = block;
      break;
    case Collective::kAlltoall:
      part.from = block / size_;
      part.to = block % size_;
      break;
    case Collective::kReduceScatter:
      part.to = block;
      break;
    default:
      break;
  }
  return part;
}

// ---- Where they lie -----------------------------------------------------------------------------

bool UnitCopies::IsReceiver(const Part& part, int rank) const {
  return (part.to == kAll || part.to == rank) && BuffersOf(part.unit, rank).result.is_there != 0;
}

// The part's offset in the rank's row of contributions.
uint64_t UnitCopies::ContributedAt(const Part& part, int rank) const {
  const uint64_t stride = BuffersOf(part.unit, rank).contribution.stride_bytes;
  return (stride == 0 ? 0 : stride * static_cast<uint64_t>(part.to)) + part.at;
}

uint64_t UnitCopies::ResultAt(const Part& part, int rank) const {
  const uint64_t stride = BuffersOf(part.unit, rank).result.stride_bytes;
  return (stride == 0 ? 0 : stride * static_cast<uint64_t>(part.from)) + part.at;
}

void UnitCopies::Begin(const Buffers* buffers) {
  buffers_ = buffers;
  memory_.resize(IndexOf(static_cast<uint32_t>(operations_.size()), 0));
  uint64_t room_bytes = 0;
  for (uint32_t unit = 0; unit < operations_.size(); ++unit) {
    room_bytes = std::max(room_bytes, std::min(ChunkBytes(unit), BlockBytesOf(problem(unit))));
  }
  for (auto& room : rooms_) {
    room = std::make_unique_for_overwrite<std::byte[]>(room_bytes);
  }
}

void UnitCopies::UseOwn(uint32_t unit, std::byte* contribution, std::byte* result) {
  Reached& own = memory_[IndexOf(unit, self_)];
  own.contribution.mapped = contribution;
  own.result.mapped = result;
}

bool UnitCopies::OpenPeer(uint32_t unit, int rank, uint32_t peer) {
  const auto open = [&](const Row& row, Memory* memory) {
    const bool is_open = row.is_there == 0 ||
                         memory->data.Open(peer, row.first, SpanOf(row.stride_bytes, unit)).ok();
    memory->mapped = memory->data.mapped();
    return is_open;
  };
  const Buffers& buffers = BuffersOf(unit, rank);
  Reached& part = memory_[IndexOf(unit, rank)];
  return open(buffers.contribution, &part.contribution) && open(buffers.result, &part.result);
}

// Finds the rank's contribution; copies it into `room` if this process has not mapped it.
ErrorCode UnitCopies::Find(const Part& part, int rank, std::byte* room,
                           const std::byte** found) const {
  const Memory& memory = MemoryOf(part.unit, rank).contribution;
  const uint64_t at = ContributedAt(part, rank);
  if (memory.mapped != nullptr) {
    *found = memory.mapped + at;
    return ErrorCode::kOk;
  }
  *found = room;
  return memory.data.CopyFrom(at, room, part.bytes, false);
}

// The memory in which a reduction is made: the result's place at one rank, if this process has
// mapped that. A contribution may lie there; only the last step, which overwrites it, uses it.
std::byte* UnitCopies::TargetOf(const Part& part) const {
  const int rank = IsReceiver(part, self_) ? self_ : part.to;
  std::byte* const mapped = rank == kAll ? nullptr : MemoryOf(part.unit, rank).result.mapped;
  return mapped != nullptr ? mapped + ResultAt(part, rank) : rooms_[0].get();
}

// Combines the contributions in the order of ranks. *result: where that lies.
ErrorCode UnitCopies::Combine(const Part& part, const std::byte** result, int* peer) {
  CollectiveOperation& operation = *operations_[part.unit];
  const size_t count = part.bytes / operation.problem.element_bytes;
  for (int rank = 0; rank < size_; ++rank) {
    *peer = rank;
    const std::byte* operand = nullptr;
    if (const ErrorCode error = Find(part, rank, rooms_[rank == 0 ? 0 : 1].get(), &operand);
        error != ErrorCode::kOk) {
      return error;
    }
    if (rank == 0) {
      *result = operand;
      continue;
    }
    std::byte* const to = rank + 1 == size_ ? TargetOf(part) : rooms_[0].get();
    if (const ErrorCode error = operation.reducer.Reduce(*result, operand, to, count);
        error != ErrorCode::kOk) {
      return error;
    }
    *result = to;
  }
  return ErrorCode::kOk;
}

ErrorCode UnitCopies::Move(uint32_t unit, uint64_t chunk, int* peer) {
  const Part part = PartOf(unit, chunk);
  if (part.bytes == 0) {
    return ErrorCode::kOk;
  }
  const std::byte* result = nullptr;
  *peer = part.from;
  if (const ErrorCode error = part.from == kAll ? Combine(part, &result, peer)
                                                : Find(part, part.from, rooms_[0].get(), &result);
      error != ErrorCode::kOk) {
    return error;
  }
  for (int rank = 0; rank < size_; ++rank) {
    if (!IsReceiver(part, rank)) {
      continue;
    }
    const Memory& memory = MemoryOf(part.unit, rank).result;
    const uint64_t at = ResultAt(part, rank);
    if (memory.mapped != nullptr) {
      if (memory.mapped + at != result) {
        shm::CopyWords(memory.mapped + at, result, part.bytes);
      }
      continue;
    }
    *peer = rank;
    if (const ErrorCode error = memory.data.CopyTo(at, result, part.bytes, false);
        error != ErrorCode::kOk) {
      return error;
    }
  }
  return ErrorCode::kOk;
}

}  // namespace ferry::mpi
