// How many switches lie between two nodes, and which links they share with others.
//
// Routes are minimal. Links inside a group (dragonfly) or a pod (fat tree) are taken to be never
// the bottleneck. Those between are: all links from one group to another, or from one leaf up, are
// one server with their joint bandwidth, an approximation that neither hashes flows onto links nor
// routes adaptively around a full one.
//
// Plain data and pure functions: any thread.
#pragma once

#include <cstdint>
#include <string>

#include "common/status.h"

namespace ferry::sim {

enum class TopologyKind : uint8_t { kDragonfly, kFatTree };

struct Topology {
  TopologyKind kind = TopologyKind::kDragonfly;
  uint32_t nodes_per_switch = 4;     // of the first stage
  uint32_t switches_per_group = 32;  // group of a dragonfly, pod of a fat tree
  uint32_t links_between = 4;        // from group to group, or from a leaf switch up
};

inline constexpr uint64_t kNoLink = UINT64_MAX;

struct Route {
  uint32_t switches = 0;    // on the way
  uint64_t link = kNoLink;  // which shared link: equal numbers are the same links
};

// kInvalidArgument: a number is 0.
Status CheckTopology(const Topology& topology);
// "dragonfly", "fat_tree".
const char* TopologyName(TopologyKind kind);
// A message of a node to itself passes its first switch.
Route RouteBetween(const Topology& topology, uint32_t from, uint32_t to);

}  // namespace ferry::sim
