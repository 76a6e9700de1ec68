#include "coll/algorithms/algorithm.h"

namespace ferry::collective {

std::span<const Algorithm> AlgorithmsOf(Collective collective) {
  static constexpr std::span<const Algorithm> (*kLists[kCollectives])() = {
      BarrierAlgorithms,
      BcastAlgorithms,
      GatherAlgorithms,
      ScatterAlgorithms,
      AllgatherAlgorithms,
      AlltoallAlgorithms,
      ReduceAlgorithms,
      AllreduceAlgorithms,
      ReduceScatterAlgorithms,
      ScanAlgorithms,
      ExscanAlgorithms,
      NeighbourAllgatherAlgorithms,
      NeighbourAlltoallAlgorithms,
  };
  return kLists[static_cast<size_t>(collective)]();
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

}  // namespace ferry::collective
