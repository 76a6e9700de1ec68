#include "coll/board/board_run.h"

#include "coll/board/host_copies.h"
#include "coll/board/task.h"

namespace ferry::collective {

// ---- Limits -------------------------------------------------------------------------------------

namespace {

constexpr size_t kKibi = 1024;
constexpr size_t kNever = SIZE_MAX / kKibi;

// Cells are few, so that those of both sides stay in the first-level cache: a message of several
// slices is then copied twice at the speed of one copy.
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

// Measured with two ranks on two cores, and with four; November 2026, reused buffers. A copy
// through cells costs no system call and keeps several ranks busy; each of n ranks that reduces
// everything does n times the work.
BoardLimits LimitsFor(int members, bool crowded, bool reachable) {
  BoardLimits limits;
  limits.direct_min_bytes.fill(SIZE_MAX);
  if (!reachable) {
    limits.cells_max_bytes = kCellsMaxBytes;
    return limits;
  }
  // In KiB: where two ranks have a core each, where more do, and where they share cores.
  const auto from = [&](Collective collective, size_t pair, size_t more, size_t crowd) {
    const size_t kibi = crowded ? crowd : members == 2 ? pair : more;
    limits.direct_min_bytes[static_cast<size_t>(collective)] = kibi * kKibi;
  };
  from(Collective::kBcast, 10, 64, 257);
  from(Collective::kGather, 8, 24, 33);
  from(Collective::kScatter, 8, 24, 33);
  from(Collective::kAllgather, 8, 24, 256);
  from(Collective::kAlltoall, 4, 12, 10);
  from(Collective::kReduce, 20, 512, kNever);
  from(Collective::kAllreduce, 48, 48, 257);
  from(Collective::kReduceScatter, 8, 24, 33);
  return limits;
}

// ---- Running ------------------------------------------------------------------------------------

namespace {

// A rank's vector, or its blocks together.
size_t WholeBytes(const Problem& problem) {
  const auto size = static_cast<size_t>(problem.size);
  switch (problem.collective) {
    case Collective::kGather:
    case Collective::kScatter:
    case Collective::kAllgather:
    case Collective::kAlltoall:
    case Collective::kReduceScatter:
      return problem.block_bytes * size;
    default:
      return problem.block_bytes;
  }
}

enum class Way { kNone, kSlices, kDirect };

Way WayOf(const Problem& problem, const BoardLimits& limits) {
  if (problem.has_blocks) {
    return Way::kNone;
  }
  if (problem.block_bytes >= limits.direct_min(problem.collective) && FitsDirect(problem)) {
    return Way::kDirect;
  }
  return problem.block_bytes <= limits.cells_max_bytes && FitsSlices(problem) ? Way::kSlices
                                                                              : Way::kNone;
}

// Device memory of at least so many bytes of a vector or a block should not pass through host
// memory: messages copy it from device to device where they can.
constexpr size_t kElsewhereMinVector = size_t{64} * 1024;
constexpr size_t kElsewhereMinBlock = size_t{256} * 1024;

// Returns true if this rank's data are such device memory. Only for collectives in which all ranks
// that must know see this rank's first slice before they have lost anything.
bool GoesElsewhere(const BoardTask& task, int device) {
  const Problem& problem = task.problem;
  if (problem.block_bytes <
      (problem.collective == Collective::kBcast ? kElsewhereMinVector : kElsewhereMinBlock)) {
    return false;
  }
  switch (problem.collective) {
    case Collective::kBcast:
      return task.is_root() && task.board.link().IsByStream(task.output);
    case Collective::kAllgather:
      return task.board.link().IsByStream(task.OwnInput());
    case Collective::kAlltoall:
      return !problem.in_place && task.board.link().IsByStream(task.input);
    case Collective::kReduce:  // of two ranks: others would not see each other's slices
      return problem.size == 2 && !task.is_root() && device != kHostMemory;
    default:
      return false;
  }
}

// In slices; a member that meets another's offer of device memory takes it.
bool RunInSlicesOrMeet(const BoardTask& task) {
  if (RunInSlices(task)) [[likely]] {
    return true;
  }
  return task.board.has_offer() && !task.board.has_failed() && !task.board.is_elsewhere() &&
         MeetDevices(task, SlotOfSlices(task.problem)) == ByDevices::kByHost && RunInSlices(task);
}

// Runs it in slices, whatever memory the buffers are: each is brought over, and taken back, at
// once.
void RunInHostMemory(const BoardTask& own, const Binding& binding) {
  Board& board = own.board;
  HostCopies copies(&board.link(), own.problem, binding);
  BoardTask task = own;
  task.input = static_cast<const char*>(copies.binding().input);
  task.output = static_cast<char*>(copies.binding().output);
  ErrorCode error = copies.error();
  if (error == ErrorCode::kOk && RunInSlicesOrMeet(task)) {
    error = copies.Deliver();
  }
  if (error != ErrorCode::kOk) [[unlikely]] {
    board.Fail({.code = error});
  }
}

// Returns true if the data of the binding are there; else this has failed.
bool HasFetched(const BoardTask& task) {
  const ErrorCode error = task.on_device != nullptr ? task.on_device->Fetch() : ErrorCode::kOk;
  if (error != ErrorCode::kOk) [[unlikely]] {
    task.board.Fail({.code = error});
  }
  return error == ErrorCode::kOk;
}

// Both return whether it is done, or has failed; false: it is to go elsewhere.
bool RunShort(const BoardTask& task, const Binding& binding) {
  const ByDevices by = RunByDevices(task, SlotOfSlices(task.problem), true);
  if (by != ByDevices::kOver && !HasFetched(task)) {
    return true;
  }
  if (by == ByDevices::kNotForThem && GoesElsewhere(task, binding.device)) [[unlikely]] {
    if (task.board.Reserve(0, Board::Slot::kCell, Board::kAll) != nullptr) {
      task.board.PostElsewhere(0, Board::Slot::kCell);
    }
  } else if (by != ByDevices::kOver) [[likely]] {
    RunInHostMemory(task, binding);
  }
  return !task.board.is_elsewhere();
}

bool RunLong(const BoardTask& task, const Binding& binding) {
  ByDevices by = RunByDevices(task, Board::Slot::kLine, false);
  if (by != ByDevices::kOver && !HasFetched(task)) {
    return true;
  }
  if (by == ByDevices::kNotForThem) {
    const DirectResult result = RunDirectly(task);
    if (result != DirectResult::kMetDevices) {
      return result != DirectResult::kUnreachable;
    }
    by = MeetDevices(task, Board::Slot::kLine);
  }
  if (by == ByDevices::kByHost) {
    RunInHostMemory(task, binding);
  }
  return !task.board.is_elsewhere();
}

}  // namespace

size_t OutputBytes(const Problem& problem) {
  switch (problem.collective) {
    case Collective::kBarrier:
      return 0;
    case Collective::kGather:
    case Collective::kReduce:
      return problem.rank == problem.root ? WholeBytes(problem) : 0;
    case Collective::kReduceScatter:
      return problem.in_place ? WholeBytes(problem) : problem.block_bytes;
    case Collective::kScatter:
      return problem.in_place ? 0 : problem.block_bytes;
    case Collective::kAllgather:
    case Collective::kAlltoall:
      return WholeBytes(problem);
    default:
      return problem.block_bytes;
  }
}

size_t InputBytes(const Problem& problem) {
  switch (problem.collective) {
    case Collective::kBarrier:
    case Collective::kBcast:
      return 0;
    case Collective::kScatter:
      return problem.rank == problem.root ? WholeBytes(problem) : 0;
    case Collective::kAlltoall:
    case Collective::kReduceScatter:
      return problem.in_place ? 0 : WholeBytes(problem);
    default:
      return problem.in_place ? 0 : problem.block_bytes;
  }
}

bool CanRunOnBoard(const Problem& problem, const BoardLimits& limits) {
  return WayOf(problem, limits) != Way::kNone;
}

uint64_t SignatureOf(const Problem& problem) {
  // 0 is no collective. In alltoall and reduce_scatter all ranks must agree on being in place.
  CallMark signature{.collective = static_cast<uint8_t>(static_cast<int>(problem.collective) + 1),
                     .size_bytes = problem.block_bytes};
  if (HasRoot(problem.collective)) {
    signature.root = static_cast<uint16_t>(problem.root);
  } else if (problem.collective == Collective::kAlltoall ||
             problem.collective == Collective::kReduceScatter) {
    signature.root = problem.in_place ? 1 : 0;
  }
  return signature.Word();
}

BoardResult RunOnBoard(Board* board, uint64_t number, const Problem& problem,
                       const Binding& binding, const BoardLimits& limits, RunFailure* failure) {
  return RunPartOnBoard(board, number, SignatureOf(problem), problem, binding, limits, failure);
}

BoardResult RunPartOnBoard(Board* board, uint64_t number, uint64_t signature,
                           const Problem& problem, const Binding& binding,
                           const BoardLimits& limits, RunFailure* failure) {
  const Way way = WayOf(problem, limits);
  if (way == Way::kNone) {
    return BoardResult::kNotForBoards;
  }
  if (binding.before != nullptr) [[unlikely]] {
    board->Renounce(number, signature);
    *failure = *binding.before;
    return BoardResult::kDone;
  }
  board->Begin(number, signature);
  const BoardTask task{*board,
                       problem,
                       static_cast<const char*>(binding.input),
                       static_cast<char*>(binding.output),
                       binding.reducer,
                       binding.on_device};
  const bool is_done = way == Way::kDirect ? RunLong(task, binding) : RunShort(task, binding);
  if (!board->End()) [[unlikely]] {
    *failure = board->failure();
    return BoardResult::kDone;
  }
  return is_done ? BoardResult::kDone : BoardResult::kElsewhere;
}

}  // namespace ferry::collective
