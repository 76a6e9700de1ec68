#include "coll/algorithms/algorithm.h"
#include "coll/algorithms/reductions.h"

namespace ferry::collective {
namespace {

// The vector's parts by rank, in `vector`.
std::vector<Range> PartsOf(const Problem& problem, const Range& vector) {
  std::vector<Range> parts;
  for (int i = 0; i < problem.size; ++i) {
    const Range block = problem.ReceiveBlock(i);
    parts.push_back(vector.Part(block.offset_bytes, block.size_bytes));
  }
  return parts;
}

Range OwnOutput(const Problem& problem) {
  return {Place::kOutput, 0, problem.ReceiveBlock(problem.rank).size_bytes};
}

void Direct(const Problem& problem, ScheduleBuilder* builder) {
  const std::vector<Range> parts = PartsOf(problem, problem.ReductionInput());
  const Range output = OwnOutput(problem);
  // In place, the result may lie across parts that are still wanted.
  const Range result = problem.in_place ? builder->Scratch(output.size_bytes) : output;
  AddDirectReduceScatter(builder, Everyone(problem), parts, result, problem.segment_bytes,
                         problem.element_bytes);
  builder->Copy(result, output);
}

void RecursiveHalving(const Problem& problem, ScheduleBuilder* builder) {
  const Reduction reduction{.input = problem.ReductionInput(),
                            .output = builder->Scratch(problem.VectorBytes()),
                            .element_bytes = problem.element_bytes};
  const Folded folded = AddFold(builder, Everyone(problem), reduction);
  const std::vector<Range> parts = PartsOf(problem, reduction.output);
  const Range own = parts[static_cast<size_t>(problem.rank)];
  if (folded.active.self < 0) {
    builder->Receive(folded.partner, OwnOutput(problem));
    return;
  }
  // Each active rank makes the parts from behind the last one's on to its own: those of two ranks
  // where it stands for another.
  std::vector<Range> groups;
  int first = 0;
  for (const int rank : folded.active.ranks) {
    groups.push_back(Span(parts, first, rank + 1));
    first = rank + 1;
  }
  AddHalvingReduceScatter(builder, folded.active, folded.vector, groups);
  if (folded.partner >= 0) {
    builder->Send(folded.partner, parts[static_cast<size_t>(folded.partner)]);
  }
  builder->Copy(own, OwnOutput(problem));
}

bool CanHalve(const Problem& problem) { return problem.commutative && !problem.are_parts_apart; }

constexpr Algorithm kAlgorithms[] = {
    {Collective::kReduceScatter, "direct", nullptr, Direct},
    {Collective::kReduceScatter, "recursive_halving", CanHalve, RecursiveHalving},
};

}  // namespace

std::span<const Algorithm> ReduceScatterAlgorithms() { return kAlgorithms; }

}  // namespace ferry::collective
