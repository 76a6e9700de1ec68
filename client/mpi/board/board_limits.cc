#include "client/mpi/board/board_limits.h"

namespace ferry::mpi {
namespace {

constexpr size_t kKibi = 1024;

// Cells are few, so that those of both sides stay in the first-level cache: a message of several
// pieces is then copied twice at the speed of one copy.
constexpr uint32_t kCells = 8;
// Enough for most messages, unless that takes too much memory: on a crowded node a rank that waits
// for room also waits for its turn on the core.
constexpr uint32_t kCellsWhereCrowded = 64;
constexpr int kMostWithManyCells = 16;
// Fewer where many ranks share a node: a board's cells would take much of the first one's heap.
constexpr uint32_t kCellsOfMany = 2;
constexpr int kMany = 64;

// The most that goes through cells where ranks cannot reach each other's memory. Beyond, messages
// are faster.
constexpr size_t kCellsMaxBytes = 64 * kKibi;

}  // namespace

BoardShape ShapeFor(int members, bool crowded) {
  if (members > kMany) {
    return {members, kCellsOfMany};
  }
  return {members, crowded && members <= kMostWithManyCells ? kCellsWhereCrowded : kCells};
}

// Measured with two ranks on two cores, and with four. A copy through cells costs no system call
// and keeps several ranks busy; each of n ranks that reduces everything does n times the work.
BoardLimits LimitsFor(int members, bool crowded, bool reachable) {
  BoardLimits limits;
  limits.direct_min_bytes.fill(SIZE_MAX);
  if (!reachable) {
    limits.cells_max_bytes = kCellsMaxBytes;
    return limits;
  }
  const auto from = [&](Collective collective, size_t bytes) {
    limits.direct_min_bytes[static_cast<size_t>(collective)] = bytes;
  };
  const bool is_pair = members == 2;
  const size_t block = (crowded ? 33 : 24) * kKibi;
  from(Collective::kBcast, (crowded ? 257 : 64) * kKibi);
  from(Collective::kGather, block);
  from(Collective::kScatter, block);
  from(Collective::kAllgather, block);
  from(Collective::kAlltoall, is_pair ? 32 * kKibi : block / 2);
  from(Collective::kReduceScatter, block);
  if (!is_pair) {
    from(Collective::kReduce, 512 * kKibi);
  }
  from(Collective::kAllreduce, (crowded ? 257 : is_pair ? 128 : 48) * kKibi);
  return limits;
}

}  // namespace ferry::mpi
