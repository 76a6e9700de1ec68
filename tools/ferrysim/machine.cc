#include "tools/ferrysim/machine.h"

#include "common/counted.h"

namespace ferry::sim {
namespace {

// The switch of `group` that has the link to `other`: they are dealt out in turn.
uint32_t Gateway(const Topology& topology, uint32_t group, uint32_t other) {
  return group * topology.switches_per_group + other % topology.switches_per_group;
}

Route DragonflyRoute(const Topology& topology, uint32_t from, uint32_t to) {
  const uint32_t from_group = from / topology.switches_per_group;
  const uint32_t to_group = to / topology.switches_per_group;
  if (from_group == to_group) {
    return {.switches = 2};
  }
  const uint32_t out = Gateway(topology, from_group, to_group);
  const uint32_t in = Gateway(topology, to_group, from_group);
  return {.switches = 2U + (out != from ? 1U : 0U) + (in != to ? 1U : 0U),
          .link = uint64_t{from_group} << 32 | to_group};
}

Route FatTreeRoute(const Topology& topology, uint32_t from, uint32_t to) {
  const bool same_pod = from / topology.switches_per_group == to / topology.switches_per_group;
  return {.switches = same_pod ? 3U : 5U, .link = from};
}

}  // namespace

Status CheckTopology(const Topology& topology) {
  for (const auto& [value, name] : {std::pair{topology.nodes_per_switch, "nodes per switch"},
                                    std::pair{topology.switches_per_group, "switches per group"},
                                    std::pair{topology.links_between, "links between groups"}}) {
    if (value == 0) {
      return {ErrorCode::kInvalidArgument, std::string(name) + " is 0: there must be one at least"};
    }
  }
  return {};
}

const char* TopologyName(TopologyKind kind) {
  return kind == TopologyKind::kDragonfly ? "dragonfly" : "fat_tree";
}

Route RouteBetween(const Topology& topology, uint32_t from, uint32_t to) {
  const uint32_t from_switch = from / topology.nodes_per_switch;
  const uint32_t to_switch = to / topology.nodes_per_switch;
  if (from_switch == to_switch) {
    return {.switches = 1};
  }
  return topology.kind == TopologyKind::kDragonfly
             ? DragonflyRoute(topology, from_switch, to_switch)
             : FatTreeRoute(topology, from_switch, to_switch);
}

Status CheckMachine(const Machine& machine) {
  if (machine.ranks_per_node == 0 || machine.nics_per_node == 0) {
    return {ErrorCode::kInvalidArgument, "a node has " + Counted(machine.ranks_per_node, "rank") +
                                             " and " + Counted(machine.nics_per_node, "NIC") +
                                             ": each must be at least 1"};
  }
  if (machine.nics_per_node > machine.ranks_per_node &&
      machine.nics_per_node % machine.ranks_per_node != 0) {
    return {ErrorCode::kInvalidArgument,
            Counted(machine.nics_per_node, "NIC") + " cannot be dealt out to " +
                Counted(machine.ranks_per_node, "rank") + " of a node evenly"};
  }
  if (machine.nics_per_node <= machine.ranks_per_node &&
      machine.ranks_per_node % machine.nics_per_node != 0) {
    return {ErrorCode::kInvalidArgument, Counted(machine.ranks_per_node, "rank") +
                                             " of a node cannot share " +
                                             Counted(machine.nics_per_node, "NIC") + " evenly"};
  }
  if (machine.nic.gap == 0 || machine.nic.gap_per_byte_ps == 0) {
    return {ErrorCode::kInvalidArgument,
            "a gap of 0: a NIC carries no infinity of messages or bytes"};
  }
  return CheckTopology(machine.topology);
}

}  // namespace ferry::sim
