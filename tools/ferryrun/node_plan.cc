#include "tools/ferryrun/node_plan.h"

#include <algorithm>
#include <numeric>
#include <unordered_map>
#include <utility>

namespace ferry::tools {
namespace {

// Hosts in the order in which they are first named, each once.
class HostTable {
 public:
  explicit HostTable(const std::function<bool(const std::string&)>& is_this_host)
      : is_this_host_(is_this_host) {}

  // The index of the host's node, which is made if it is a new one.
  uint32_t Add(const Host& host, bool adds_slots) {
    const auto known = node_of_name_.find(host.name);
    const bool is_new = known == node_of_name_.end();
    const uint32_t node = is_new ? NodeOf(host.name) : known->second;
    if (is_new) {
      node_of_name_.emplace(host.name, node);
    }
    if (is_new || adds_slots) {
      slots_[node] += host.slots;
    }
    return node;
  }

  std::vector<NodePlan>& nodes() { return nodes_; }
  const std::vector<uint64_t>& slots() const { return slots_; }

 private:
  uint32_t NodeOf(const std::string& name) {
    const bool remote = !is_this_host_(name);
    for (uint32_t node = 0; !remote && node < nodes_.size(); ++node) {
      if (!nodes_[node].remote) {
        return node;
      }
    }
    nodes_.push_back({.host = name, .remote = remote});
    slots_.push_back(0);
    return static_cast<uint32_t>(nodes_.size() - 1);
  }

  const std::function<bool(const std::string&)>& is_this_host_;
  std::unordered_map<std::string, uint32_t> node_of_name_;
  std::vector<NodePlan> nodes_;
  std::vector<uint64_t> slots_;
};

bool NamesHosts(const Arguments& arguments) {
  return !arguments.hosts.empty() || !arguments.rank_lines.empty() ||
         std::any_of(arguments.parts.begin(), arguments.parts.end(),
                     [](const Part& part) { return !part.hosts.empty(); });
}

// The ranks of each part: the number asked for or, with a number per node, as many as there is room
// for.
uint64_t RanksOf(const Part& part, size_t nodes, const Mapping& mapping) {
  const bool fills = mapping.by == Mapping::By::kCount && !mapping.wraps;
  return part.ranks.value_or(fills ? mapping.count * nodes : 1);
}

// The node of each of so many ranks, as the rankfile says.
StatusOr<std::vector<uint32_t>> PlaceByFile(const Arguments& arguments, uint64_t ranks,
                                            HostTable* table) {
  if (ranks > arguments.rank_lines.size()) {
    return Status(ErrorCode::kInvalidArgument, "the rankfile has no line for rank " +
                                                   std::to_string(arguments.rank_lines.size()));
  }
  std::unordered_map<std::string, std::string> known;  // the job's names of hosts
  std::vector<uint32_t> node_of_rank;
  for (uint64_t rank = 0; rank < ranks; ++rank) {
    const RankfileLine& line = arguments.rank_lines[rank];
    const auto [name, is_new] = known.emplace(line.host, "");
    if (is_new) {
      StatusOr<std::string> host = HostOfLine(line, arguments.hosts);
      FERRY_RETURN_IF_ERROR(host.status());
      name->second = std::move(*host);
    }
    node_of_rank.push_back(table->Add({.name = name->second}, /*adds_slots=*/false));
  }
  return node_of_rank;
}

void DropEmptyNodes(JobLayout* layout) {
  std::vector<uint32_t> new_index(layout->nodes.size());
  std::vector<NodePlan> nodes;
  for (size_t node = 0; node < layout->nodes.size(); ++node) {
    new_index[node] = static_cast<uint32_t>(nodes.size());
    if (layout->nodes[node].ranks > 0) {
      nodes.push_back(std::move(layout->nodes[node]));
    }
  }
  layout->nodes = std::move(nodes);
  for (uint32_t& node : layout->node_of_rank) {
    node = new_index[node];
  }
}

}  // namespace

StatusOr<JobLayout> PlanNodes(const Arguments& arguments, const config::Options& options,
                              const std::function<bool(const std::string&)>& is_this_host) {
  const bool named = NamesHosts(arguments);
  if (named && arguments.nodes > 1) {
    return Status(ErrorCode::kInvalidArgument,
                  "--nodes " + std::to_string(arguments.nodes) +
                      " makes nodes of this machine; with hosts, each host is a node");
  }
  HostTable table(is_this_host);
  for (const Host& host : arguments.hosts) {
    table.Add(host, /*adds_slots=*/true);
  }
  std::vector<PartPlace> places;
  for (const Part& part : arguments.parts) {
    PartPlace& place = places.emplace_back();
    for (const Host& host : part.hosts) {
      const uint32_t node = table.Add(host, /*adds_slots=*/false);
      if (std::find(place.nodes.begin(), place.nodes.end(), node) == place.nodes.end()) {
        place.nodes.push_back(node);
      }
    }
  }
  std::vector<uint32_t> by_file;
  if (!arguments.rank_lines.empty()) {
    uint64_t ranks = 0;
    for (const Part& part : arguments.parts) {
      ranks += part.ranks.value_or(1);
    }
    StatusOr<std::vector<uint32_t>> placed = PlaceByFile(arguments, ranks, &table);
    FERRY_RETURN_IF_ERROR(placed.status());
    by_file = std::move(*placed);
  }
  JobLayout layout;
  layout.nodes = named ? std::move(table.nodes()) : std::vector<NodePlan>(arguments.nodes);
  uint64_t total = 0;
  for (size_t part = 0; part < places.size(); ++part) {
    PartPlace& place = places[part];
    const size_t nodes = place.nodes.empty() ? layout.nodes.size() : place.nodes.size();
    place.ranks = RanksOf(arguments.parts[part], nodes, arguments.mapping);
    FERRY_RETURN_IF_ERROR(CheckCounts(place.ranks, 1, options));
    total += place.ranks;
    layout.part_of_rank.insert(layout.part_of_rank.end(), place.ranks, static_cast<uint32_t>(part));
  }
  FERRY_RETURN_IF_ERROR(CheckCounts(total, named ? 1 : arguments.nodes, options));
  const std::vector<uint64_t> slots = named ? table.slots() : EvenSlots(total, layout.nodes.size());
  layout.slots = named ? std::accumulate(slots.begin(), slots.end(), uint64_t{0}) : 0;
  StatusOr<std::vector<uint32_t>> node_of_rank =
      by_file.empty() ? PlaceRanks(places, slots, arguments.mapping) : std::move(by_file);
  FERRY_RETURN_IF_ERROR(node_of_rank.status());
  FERRY_RETURN_IF_ERROR(CheckLocalCounts(*node_of_rank, layout.nodes.size(), options));
  layout.node_of_rank = std::move(*node_of_rank);
  for (const uint32_t node : layout.node_of_rank) {
    ++layout.nodes[node].ranks;
  }
  DropEmptyNodes(&layout);
  return layout;
}

std::vector<uint32_t> IndexesOf(const JobLayout& layout) {
  std::vector<uint32_t> of_host(layout.nodes.size());
  uint32_t here = 0;
  std::vector<uint32_t> indexes;
  indexes.reserve(layout.node_of_rank.size());
  for (const uint32_t node : layout.node_of_rank) {
    indexes.push_back(layout.nodes[node].remote ? of_host[node]++ : here++);
  }
  return indexes;
}

std::vector<uint32_t> MachineOfRank(const JobLayout& layout) {
  std::vector<uint32_t> machine_of_node;
  uint32_t hosts = 0;
  for (const NodePlan& node : layout.nodes) {
    machine_of_node.push_back(node.remote ? ++hosts : 0);
  }
  std::vector<uint32_t> machines;
  for (const uint32_t node : layout.node_of_rank) {
    machines.push_back(machine_of_node[node]);
  }
  return machines;
}

}  // namespace ferry::tools
