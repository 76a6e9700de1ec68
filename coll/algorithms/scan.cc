#include "coll/algorithms/algorithm.h"
#include "coll/algorithms/party.h"

namespace ferry::collective {
namespace {

Range OutputOf(const Problem& problem) { return {Place::kOutput, 0, problem.block_bytes}; }

// Returns true if this rank exchanges messages after the round of `mask`.
bool HasLaterRound(const Problem& problem, int mask) {
  for (int later = 2 * mask; later < problem.size; later *= 2) {
    if ((problem.rank ^ later) < problem.size) {
      return true;
    }
  }
  return false;
}

// A rank learns of the ranks before it round by round. `partial` is the reduction of an aligned
// group of ranks that it is in, which doubles each round. The reductions of groups before its own
// also belong to the result.
void RecursiveDoubling(const Problem& problem, ScheduleBuilder* builder) {
  const bool inclusive = problem.collective == Collective::kScan;
  const Range output = OutputOf(problem);
  const Range input = problem.ReductionInput();
  Range partial = input;
  Range result = input;  // of an exclusive scan: nothing yet
  bool has_result = inclusive;
  for (int mask = 1; mask < problem.size; mask *= 2) {
    const int partner = problem.rank ^ mask;
    if (partner >= problem.size) {
      continue;
    }
    const Range theirs = builder->Scratch(problem.block_bytes);
    builder->Send(partner, partial);
    builder->Receive(partner, theirs);
    // This comes before the result is written, which may overwrite what `partial` begins with.
    if (HasLaterRound(problem, mask)) {
      const Range sum = builder->Scratch(problem.block_bytes);
      const bool is_before = partner < problem.rank;
      builder->Reduce(is_before ? theirs : partial, is_before ? partial : theirs, sum);
      partial = sum;
    }
    if (partner > problem.rank) {
      continue;
    }
    if (has_result) {
      builder->Reduce(theirs, result, output);
    } else {
      builder->Copy(theirs, output);
    }
    result = output;
    has_result = true;
  }
  if (inclusive && !(result == output)) {
    builder->Copy(result, output);
  }
}

// Goes from one rank to the next, in segments.
void Linear(const Problem& problem, ScheduleBuilder* builder) {
  const bool inclusive = problem.collective == Collective::kScan;
  const bool is_last = problem.rank + 1 == problem.size;
  const Range input = problem.ReductionInput();
  for (const Range& own : Segments(input, problem.segment_bytes, problem.element_bytes)) {
    const Range output = OutputOf(problem).Part(own.offset_bytes, own.size_bytes);
    Range sum = own;
    if (problem.rank > 0) {
      const Range before = builder->Scratch(own.size_bytes);
      builder->Receive(problem.rank - 1, before);
      sum = inclusive ? output : builder->Scratch(own.size_bytes);
      if (inclusive || !is_last) {
        builder->Reduce(before, own, sum);
      }
      if (!inclusive) {
        builder->Copy(before, output);
      }
    } else if (inclusive) {
      builder->Copy(own, output);
    }
    if (!is_last) {
      builder->Send(problem.rank + 1, sum);
    }
  }
}

constexpr Algorithm kScan[] = {
    {Collective::kScan, "recursive_doubling", nullptr, RecursiveDoubling},
    {Collective::kScan, "linear", nullptr, Linear},
};
constexpr Algorithm kExscan[] = {
    {Collective::kExscan, "recursive_doubling", nullptr, RecursiveDoubling},
    {Collective::kExscan, "linear", nullptr, Linear},
};

}  // namespace

std::span<const Algorithm> ScanAlgorithms() { return kScan; }
std::span<const Algorithm> ExscanAlgorithms() { return kExscan; }

}  // namespace ferry::collective
