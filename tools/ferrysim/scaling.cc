#include "tools/ferrysim/scaling.h"

#include <string>

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
    progress(std::string(SendKindName(send)) + " sends, " + std::to_string(plan.base.cells) +
             " cells on a side, " + std::to_string(ranks) + " ranks");
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

}  // namespace ferry::sim
