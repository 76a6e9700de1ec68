#include "client/mpi/board/board_run.h"

#include <cstdlib>
#include <memory>
#include <new>
#include <optional>

#include "client/mpi/board/task.h"

namespace ferry::mpi {
namespace {

// A rank's vector, or its blocks together.
size_t WholeBytes(const Problem& problem) {
  const auto size = static_cast<size_t>(problem.size);
  switch (problem.collective) {
    case Collective::kGather:
    case Collective::kScatter:
    case Collective::kAllgather:
    case Collective::kAlltoall:
    case Collective::kReduceScatter: {
      size_t bytes = 0;
      return __builtin_mul_overflow(problem.block_bytes, size, &bytes) ? SIZE_MAX : bytes;
    }
    default:
      return problem.block_bytes;
  }
}

bool IsDirect(const Problem& problem, const BoardLimits& limits) {
  return problem.block_bytes >= limits.direct_min(problem.collective) && FitsDirect(problem);
}

bool IsInPieces(const Problem& problem, const BoardLimits& limits) {
  return problem.block_bytes <= limits.cells_max_bytes && FitsPieces(problem);
}

bool HasRoot(Collective collective) {
  return collective == Collective::kBcast || collective == Collective::kGather ||
         collective == Collective::kScatter || collective == Collective::kReduce;
}

// What the problem is called on boards.
uint64_t SignatureOf(const Problem& problem) {
  // 0 is no collective. Where there is no root, all ranks must agree on being in place.
  CallMark signature{
      .collective = static_cast<uint8_t>(static_cast<int>(problem.collective) + 1),
      .size_bytes = problem.block_bytes};
  if (HasRoot(problem.collective)) {
    signature.root = static_cast<uint16_t>(problem.root);
  } else if (problem.collective == Collective::kAlltoall ||
             problem.collective == Collective::kReduceScatter) {
    signature.root = problem.in_place ? 1 : 0;
  }
  return signature.Word();
}

// Memory that stands in for some that CPUs cannot load from.
class HostCopy {
 public:
  explicit HostCopy(size_t bytes) : bytes_(bytes), memory_(new (std::nothrow) char[bytes]) {}
  char* memory() const { return memory_.get(); }
  bool Fetch(Board& board, const void* from) {
    return Note(board, memory_ == nullptr ? ErrorCode::kOutOfMemory
                                          : board.link().Copy(memory_.get(), from, bytes_));
  }
  bool Deliver(Board& board, void* to) {
    return Note(board, board.link().Copy(to, memory_.get(), bytes_));
  }

 private:
  static bool Note(Board& board, ErrorCode error) {
    if (error != ErrorCode::kOk) {
      board.Fail({.code = error});
    }
    return error == ErrorCode::kOk;
  }

  size_t bytes_;
  std::unique_ptr<char[]> memory_;
};

// In pieces, whatever memory the buffers are: each is brought over, and taken back, at once.
void RunInHostMemory(Board& board, const Problem& problem, const Binding& binding) {
  NodeLink& link = board.link();
  const size_t input_bytes = InputBytes(problem);
  const size_t output_bytes = OutputBytes(problem);
  BoardTask task{board, problem, static_cast<const char*>(binding.input),
                 static_cast<char*>(binding.output), binding.reducer};
  std::optional<HostCopy> input;
  std::optional<HostCopy> output;
  if (input_bytes != 0 && link.IsByStream(binding.input)) [[unlikely]] {
    input.emplace(input_bytes);
    task.input = input->memory();
    if (!input->Fetch(board, binding.input)) {
      return;
    }
  }
  if (output_bytes != 0 && link.IsByStream(binding.output)) [[unlikely]] {
    output.emplace(output_bytes);
    task.output = output->memory();
    // An output that is only written need not be read first, but for what stays as it is.
    const bool is_read = problem.in_place || problem.collective == Collective::kExscan ||
                         (problem.collective == Collective::kBcast && task.is_root());
    if (task.output == nullptr) {
      board.Fail({.code = ErrorCode::kOutOfMemory});
      return;
    }
    if (is_read && !output->Fetch(board, binding.output)) {
      return;
    }
  }
  const bool is_written = !(problem.collective == Collective::kBcast && task.is_root());
  if (RunInPieces(task) && output.has_value() && is_written) {
    output->Deliver(board, binding.output);
  }
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
  if (problem.has_blocks) {
    return false;
  }
  return IsInPieces(problem, limits) || IsDirect(problem, limits);
}

bool RunOnBoard(Board* board, uint64_t number, const Problem& problem, const Binding& binding,
                const BoardLimits& limits, RunFailure* failure) {
  board->Begin(number, SignatureOf(problem));
  bool is_done = true;
  if (IsDirect(problem, limits)) {
    const BoardTask task{*board, problem, static_cast<const char*>(binding.input),
                         static_cast<char*>(binding.output), binding.reducer};
    is_done = RunDirectly(task) != DirectResult::kUnreachable;
  } else {
    RunInHostMemory(*board, problem, binding);
  }
  if (!board->End()) [[unlikely]] {
    *failure = board->failure();
    return true;
  }
  return is_done;
}

}  // namespace ferry::mpi
