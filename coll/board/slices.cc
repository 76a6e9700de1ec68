// Short collectives: through lines and cells, in slices. See board_run.h.
#include <cstdint>
#include <utility>

#include "coll/board/task.h"
#include "shm/word_copy.h"

namespace ferry::collective {
namespace {

using Slot = Board::Slot;

// How a member's posts are cut: into slices of every one of its `blocks` blocks.
struct Cut {
  Slot slot = Slot::kLine;
  size_t block_bytes = 0;
  size_t width = 0;  // bytes of one block in one slice
  uint32_t slices = 1;

  size_t Offset(uint32_t slice) const { return slice * width; }
  // Bytes of one block in this slice.
  size_t Bytes(uint32_t slice) const { return std::min(width, block_bytes - Offset(slice)); }
};

size_t BlocksPerPost(const Problem& problem) {
  switch (problem.collective) {
    case Collective::kScatter:
    case Collective::kAlltoall:
    case Collective::kReduceScatter:
      return static_cast<size_t>(problem.size);
    default:
      return 1;
  }
}

size_t WidthOf(const Problem& problem) {
  const size_t room = kBoardCellBytes / BlocksPerPost(problem);
  return room / problem.element_bytes * problem.element_bytes;
}

Cut CutOf(const Problem& problem) {
  Cut cut{.block_bytes = problem.block_bytes};
  if (problem.block_bytes * BlocksPerPost(problem) <= kBoardLineBytes) {
    cut.width = problem.block_bytes;
    return cut;
  }
  cut.slot = Slot::kCell;
  cut.width = WidthOf(problem);
  cut.slices = static_cast<uint32_t>((problem.block_bytes + cut.width - 1) / cut.width);
  return cut;
}

// Posts all slices, filled by fill(slice, memory), as far ahead as there is room, and takes the
// others' by take(slice), which returns whether it worked.
template <typename Fill, typename Take>
bool PostAndTake(Board& board, const Cut& cut, int reader, Fill&& fill, Take&& take) {
  uint32_t posted = 0;
  for (uint32_t slice = 0; slice < cut.slices; ++slice) {
    while (posted <= slice || (posted < cut.slices && board.HasRoom(posted, cut.slot))) {
      std::byte* const memory = board.Reserve(posted, cut.slot, reader);
      if (memory == nullptr) [[unlikely]] {
        return false;
      }
      fill(posted, memory);
      board.Post(posted++, cut.slot);
    }
    if (!take(slice)) [[unlikely]] {
      return false;
    }
    if (cut.slices > 1) {
      board.Consume(slice);
    }
  }
  return true;
}

// Takes all slices, for a member that posts nothing.
template <typename Take>
bool TakeAll(Board& board, const Cut& cut, Take&& take) {
  for (uint32_t slice = 0; slice < cut.slices; ++slice) {
    if (!take(slice)) [[unlikely]] {
      return false;
    }
    if (cut.slices > 1) {
      board.Consume(slice);
    }
  }
  return true;
}

constexpr auto kNothing = [](uint32_t) { return true; };

// Posts a part of each of the blocks from `blocks` on.
auto FillBlocks(const BoardTask& task, const Cut& cut, const char* blocks) {
  return [&task, cut, blocks](uint32_t slice, std::byte* to) {
    const size_t bytes = cut.Bytes(slice);
    for (int i = 0; i < task.size(); ++i) {
      const auto block = static_cast<size_t>(i);
      shm::CopyWords(to + block * bytes, blocks + block * cut.block_bytes + cut.Offset(slice),
                     bytes);
    }
  };
}

auto FillFrom(const Cut& cut, const char* from) {
  return [cut, from](uint32_t slice, std::byte* to) {
    shm::CopyWords(to, from + cut.Offset(slice), cut.Bytes(slice));
  };
}

// ---- Moving -------------------------------------------------------------------------------------

bool Barrier(const BoardTask& task, const Cut& cut) {
  return PostAndTake(
      task.board, cut, Board::kAll, [](uint32_t, std::byte*) {},
      [&](uint32_t slice) {
        for (int i = 0; i < task.size(); ++i) {
          if (i != task.self() && task.board.Await(i, slice, cut.slot) == nullptr) [[unlikely]] {
            return false;
          }
        }
        return true;
      });
}

// Takes what `member` posted into `to`, beginning at `skip` in the slice.
bool TakeFrom(const BoardTask& task, const Cut& cut, int member, uint32_t slice, size_t skip,
              char* to) {
  const std::byte* const from = task.board.Await(member, slice, cut.slot);
  if (from == nullptr) [[unlikely]] {
    return false;
  }
  shm::CopyWords(to + cut.Offset(slice), from + skip, cut.Bytes(slice));
  return true;
}

// Takes what each other member posted into its block of the output.
bool TakeFromOthers(const BoardTask& task, const Cut& cut, uint32_t slice, size_t skip) {
  for (int i = 0; i < task.size(); ++i) {
    char* const block = task.output + static_cast<size_t>(i) * cut.block_bytes;
    if (i != task.self() && !TakeFrom(task, cut, i, slice, skip, block)) [[unlikely]] {
      return false;
    }
  }
  return true;
}

bool Bcast(const BoardTask& task, const Cut& cut) {
  if (task.is_root()) {
    return PostAndTake(task.board, cut, Board::kAll, FillFrom(cut, task.output), kNothing);
  }
  return TakeAll(task.board, cut, [&](uint32_t slice) {
    return TakeFrom(task, cut, task.problem.root, slice, 0, task.output);
  });
}

bool Gather(const BoardTask& task, const Cut& cut) {
  if (!task.is_root()) {
    return PostAndTake(task.board, cut, task.problem.root, FillFrom(cut, task.input), kNothing);
  }
  if (!task.problem.in_place) {
    shm::CopyWords(task.output + task.OwnOffset(), task.input, cut.block_bytes);
  }
  return TakeAll(task.board, cut,
                 [&](uint32_t slice) { return TakeFromOthers(task, cut, slice, 0); });
}

bool Scatter(const BoardTask& task, const Cut& cut) {
  if (!task.is_root()) {
    return TakeAll(task.board, cut, [&](uint32_t slice) {
      const size_t skip = static_cast<size_t>(task.self()) * cut.Bytes(slice);
      return TakeFrom(task, cut, task.problem.root, slice, skip, task.output);
    });
  }
  if (!task.problem.in_place) {
    shm::CopyWords(task.output, task.input + task.OwnOffset(), cut.block_bytes);
  }
  return PostAndTake(task.board, cut, Board::kAll, FillBlocks(task, cut, task.input), kNothing);
}

bool Allgather(const BoardTask& task, const Cut& cut) {
  const char* const own = task.OwnInput();
  if (!task.problem.in_place) {
    shm::CopyWords(task.output + task.OwnOffset(), own, cut.block_bytes);
  }
  return PostAndTake(task.board, cut, Board::kAll, FillFrom(cut, own),
                     [&](uint32_t slice) { return TakeFromOthers(task, cut, slice, 0); });
}

// In place, a slice is overwritten only after it was posted.
bool Alltoall(const BoardTask& task, const Cut& cut) {
  const char* const blocks = task.problem.in_place ? task.output : task.input;
  if (!task.problem.in_place) {
    shm::CopyWords(task.output + task.OwnOffset(), task.input + task.OwnOffset(), cut.block_bytes);
  }
  return PostAndTake(task.board, cut, Board::kAll, FillBlocks(task, cut, blocks),
                     [&](uint32_t slice) {
                       return TakeFromOthers(task, cut, slice,
                                             static_cast<size_t>(task.self()) * cut.Bytes(slice));
                     });
}

// ---- Reducing -----------------------------------------------------------------------------------

// Reduces the members' operands of one slice in the order of ranks: those of [0, end), each at
// `skip` in its slice, but this rank's own at `own`. `to` may be `own`: it is not written before it
// was read.
bool Fold(const BoardTask& task, const Cut& cut, uint32_t slice, int end, size_t skip,
          const char* own, char* to) {
  const size_t bytes = cut.Bytes(slice);
  alignas(64) char partial[kBoardCellBytes];
  const void* sum = nullptr;
  for (int i = 0; i < end; ++i) {
    const void* operand = own;
    if (i != task.self()) {
      const std::byte* posted = task.board.Await(i, slice, cut.slot);
      if (posted == nullptr) [[unlikely]] {
        posted = TakeInsteadOfOffer(task, i, cut.slot);
        if (posted == nullptr) {
          return false;
        }
      }
      operand = posted + skip;
    }
    if (i == 0) {
      sum = operand;
      continue;
    }
    char* const next = to == own && i < task.self() ? partial : to;
    if (!task.Reduce(sum, operand, next, bytes)) [[unlikely]] {
      return false;
    }
    sum = next;
  }
  if (end == 1 && sum != to) {
    shm::CopyWords(to, sum, bytes);
  }
  return true;
}

bool Reduce(const BoardTask& task, const Cut& cut) {
  const char* const own = task.OwnInput();
  if (!task.is_root()) {
    return PostAndTake(task.board, cut, task.problem.root, FillFrom(cut, own), kNothing);
  }
  return TakeAll(task.board, cut, [&](uint32_t slice) {
    return Fold(task, cut, slice, task.size(), 0, own + cut.Offset(slice),
                task.output + cut.Offset(slice));
  });
}

// Every rank reduces everything: that takes less time than waiting for the others.
bool Allreduce(const BoardTask& task, const Cut& cut) {
  const char* const own = task.OwnInput();
  return PostAndTake(task.board, cut, Board::kAll, FillFrom(cut, own), [&](uint32_t slice) {
    return Fold(task, cut, slice, task.size(), 0, own + cut.Offset(slice),
                task.output + cut.Offset(slice));
  });
}

// In place, results lie where block 0 was: a slice of it is overwritten only after it was posted.
bool ReduceScatter(const BoardTask& task, const Cut& cut) {
  const char* const blocks = task.OwnInput();
  return PostAndTake(
      task.board, cut, Board::kAll, FillBlocks(task, cut, blocks), [&](uint32_t slice) {
        const size_t skip = static_cast<size_t>(task.self()) * cut.Bytes(slice);
        return Fold(task, cut, slice, task.size(), skip,
                    blocks + task.OwnOffset() + cut.Offset(slice), task.output + cut.Offset(slice));
      });
}

// Ranks before `end` contribute to this one's result.
bool Scan(const BoardTask& task, const Cut& cut, int end) {
  const char* const own = task.OwnInput();
  return PostAndTake(task.board, cut, Board::kAll, FillFrom(cut, own), [&](uint32_t slice) {
    const char* const operand = end > task.self() ? own + cut.Offset(slice) : nullptr;
    return end == 0 || Fold(task, cut, slice, end, 0, operand, task.output + cut.Offset(slice));
  });
}

}  // namespace

Slot SlotOfSlices(const Problem& problem) { return CutOf(problem).slot; }

bool FitsSlices(const Problem& problem) {
  if (IsAmongNeighbours(problem.collective)) {
    return false;
  }
  // Divides only where a line is too short.
  return problem.block_bytes * BlocksPerPost(problem) <= kBoardLineBytes ||
         (WidthOf(problem) != 0 && problem.block_bytes / WidthOf(problem) < (1U << 20));
}

bool RunInSlices(const BoardTask& task) {
  const Cut cut = CutOf(task.problem);
  switch (task.problem.collective) {
    case Collective::kBarrier:
      return Barrier(task, cut);
    case Collective::kBcast:
      return Bcast(task, cut);
    case Collective::kGather:
      return Gather(task, cut);
    case Collective::kScatter:
      return Scatter(task, cut);
    case Collective::kAllgather:
      return Allgather(task, cut);
    case Collective::kAlltoall:
      return Alltoall(task, cut);
    case Collective::kReduce:
      return Reduce(task, cut);
    case Collective::kAllreduce:
      return Allreduce(task, cut);
    case Collective::kReduceScatter:
      return ReduceScatter(task, cut);
    case Collective::kScan:
      return Scan(task, cut, task.self() + 1);
    case Collective::kExscan:
      return Scan(task, cut, task.self());
    default:
      return false;  // FitsSlices has said so
  }
}

}  // namespace ferry::collective
