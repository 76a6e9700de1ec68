#include "client/mpi/collective/algorithms/algorithm.h"

namespace ferry::mpi {

std::span<const Algorithm> AlgorithmsOf(Collective collective) {
  switch (collective) {
    case Collective::kBarrier:
      return BarrierAlgorithms();
    case Collective::kBcast:
      return BcastAlgorithms();
    case Collective::kGather:
      return GatherAlgorithms();
    case Collective::kScatter:
      return ScatterAlgorithms();
    case Collective::kAllgather:
      return AllgatherAlgorithms();
    case Collective::kAlltoall:
      return AlltoallAlgorithms();
    case Collective::kReduce:
      return ReduceAlgorithms();
    case Collective::kAllreduce:
      return AllreduceAlgorithms();
    case Collective::kReduceScatter:
      return ReduceScatterAlgorithms();
    case Collective::kScan:
      return ScanAlgorithms();
    case Collective::kExscan:
      return ExscanAlgorithms();
    case Collective::kNeighbourAllgather:
      return NeighbourAllgatherAlgorithms();
    case Collective::kNeighbourAlltoall:
      break;
  }
  return NeighbourAlltoallAlgorithms();
}

const Algorithm* InterAlgorithm(Collective collective) {
  for (const Algorithm& algorithm : InterAlgorithms()) {
    if (algorithm.collective == collective) {
      return &algorithm;
    }
  }
  return nullptr;
}

const Algorithm* FindAlgorithm(Collective collective, std::string_view name) {
  for (const Algorithm& algorithm : AlgorithmsOf(collective)) {
    if (algorithm.name == name) {
      return &algorithm;
    }
  }
  return nullptr;
}

bool Fits(const Algorithm& algorithm, const Problem& problem) {
  return algorithm.fits == nullptr || algorithm.fits(problem);
}

Schedule MakeSchedule(const Algorithm& algorithm, const Problem& problem) {
  ScheduleBuilder builder(problem.element_bytes);
  algorithm.add(problem, &builder);
  return builder.Finish();
}

}  // namespace ferry::mpi
