#include "tools/ferryrun/placement.h"

#include <string>

namespace ferry::tools {

Status CheckPlacement(uint64_t ranks, uint64_t nodes, const config::Options& options) {
  const auto refuse = [](std::string message) {
    return Status(ErrorCode::kInvalidArgument, std::move(message));
  };
  const std::string n = std::to_string(ranks);
  if (ranks == 0) {
    return refuse("-n 0: a job has at least one rank");
  }
  if (ranks > options.max_ranks) {
    return refuse("-n " + n + ": a job has at most " + std::to_string(options.max_ranks) +
                  " ranks (raise it with --max_ranks)");
  }
  if (nodes == 0) {
    return refuse("--nodes 0: a job has at least one node");
  }
  if (nodes > ranks) {
    return refuse("--nodes " + std::to_string(nodes) + " for -n " + n +
                  ": every node needs at least one rank");
  }
  const uint64_t largest = (ranks + nodes - 1) / nodes;
  if (largest > options.max_local_ranks) {
    return refuse("-n " + n + " on " + std::to_string(nodes) + " node(s) puts " +
                  std::to_string(largest) + " ranks on one, but a daemon serves at most " +
                  std::to_string(options.max_local_ranks) +
                  " (add --nodes, or raise it with --max_local_ranks)");
  }
  return {};
}

std::vector<uint32_t> PlaceInBlocks(uint32_t ranks, uint32_t nodes) {
  std::vector<uint32_t> node_of_rank;
  node_of_rank.reserve(ranks);
  for (uint32_t node = 0; node < nodes; ++node) {
    const uint32_t block = ranks / nodes + (node < ranks % nodes ? 1 : 0);
    node_of_rank.insert(node_of_rank.end(), block, node);
  }
  return node_of_rank;
}

}  // namespace ferry::tools
