#include "tools/ferrysim/scaling.h"

#include <string>

#include "common/counted.h"

namespace ferry::sim {
namespace {

StatusOr<ScalingPoint> RunPoint(const ScalingPlan& plan, SendKind send, uint32_t ranks) {
  ScalingPoint point{.ranks = ranks};
  uint32_t layouts = 0;
  for (const uint32_t per_node : plan.ranks_per_node) {
    const uint32_t nodes = ranks / per_node;
    if (nodes == 0 || nodes > plan.most_nodes) {
      continue;
    }
    HaloPlan halo = plan.base;
    halo.send = send;
    halo.ranks = ranks;
    halo.machine.ranks_per_node = per_node;
    const StatusOr<HaloResult> result = RunHalo(halo);
    FERRY_RETURN_IF_ERROR(result.status());
    point.iteration_us += result->iteration_us;
    if (layouts++ == 0 || result->iteration_us < point.fastest_us) {
      point.fastest_us = result->iteration_us;
      point.fastest_nodes = nodes;
    }
  }
  point.iteration_us /= layouts == 0 ? 1 : layouts;
  return point;
}

}  // namespace

StatusOr<std::vector<ScalingPoint>> RunScaling(const ScalingPlan& plan, SendKind send,
                                               const Progress& progress) {
  std::vector<ScalingPoint> points;
  for (uint32_t ranks = plan.first_ranks; ranks <= plan.most_ranks; ranks *= plan.factor) {
    progress(std::string(SendKindName(send)) + " sends, " + Counted(plan.base.cells, "cell") +
             " on a side, " + Counted(ranks, "rank"));
    const StatusOr<ScalingPoint> point = RunPoint(plan, send, ranks);
    FERRY_RETURN_IF_ERROR(point.status());
    if (point->fastest_nodes != 0) {
      points.push_back(*point);
    }
  }
  return points;
}

// Compute time is proportional to it, the rest does not depend on it: two runs tell.
StatusOr<double> FitCells(HaloPlan plan, double one_rank_us) {
  plan.ranks = 1;
  plan.send = SendKind::kCpu;
  plan.ps_per_cell = 20;
  const StatusOr<HaloResult> low = RunHalo(plan);
  FERRY_RETURN_IF_ERROR(low.status());
  plan.ps_per_cell = 25;
  const StatusOr<HaloResult> high = RunHalo(plan);
  FERRY_RETURN_IF_ERROR(high.status());
  return 20 + 5 * (one_rank_us - low->iteration_us) / (high->iteration_us - low->iteration_us);
}

const std::vector<PublishedProblem>& PublishedProblems() {
  static const std::vector<PublishedProblem> problems = {{"2 GB", 16384, 6156},
                                                         {"30 GB", 61440, 88670}};
  return problems;
}

const std::vector<PublishedBest>& TableFive() {
  static const std::vector<PublishedBest> rows = {{16384, SendKind::kCpu, 50.23, 1024, 1024},
                                                  {16384, SendKind::kReady, 50.23, 512, 1024},
                                                  {16384, SendKind::kRegular, 40.49, 512, 1024},
                                                  {61440, SendKind::kCpu, 485.4, 1024, 4096},
                                                  {61440, SendKind::kReady, 622.2, 1024, 8192},
                                                  {61440, SendKind::kRegular, 543.7, 1024, 4096}};
  return rows;
}

const std::vector<PublishedIteration>& PublishedIterations() {
  static const std::vector<PublishedIteration> iterations = {
      {16384, 4, 1588, 1592, 1609},       {16384, 8, 864.3, 869.4, 894.3},
      {16384, 128, 168.9, 181.7, 187.8},  {16384, 256, 143.6, 162.4, 169.8},
      {16384, 512, 132.0, 160.4, 159.1},  {16384, 1024, 129.4, 161.2, 134.7},
      {16384, 2048, 131.1, 162.2, 135.4}, {16384, 4096, 135.4, 166.1, 131.4},
      {16384, 8192, 142.2, 177.8, 135.4}, {61440, 4, 21674, 21795, 21586},
      {61440, 8, 10744, 10884, 10776},    {61440, 64, 1420, 1431, 1439},
      {61440, 128, 781.6, 788.2, 797.6},  {61440, 256, 466.4, 475.6, 489.2},
      {61440, 512, 299.2, 309.2, 325.6},  {61440, 1024, 217.6, 228.3, 246.0},
      {61440, 2048, 161.6, 174.6, 200.4}, {61440, 4096, 141.7, 168.7, 185.7},
      {61440, 8192, 143.1, 176.2, 189.5}};
  return iterations;
}

}  // namespace ferry::sim
