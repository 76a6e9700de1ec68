// The simulated machine: nodes, NICs, network, GPUs, and how long CPUs take for their work.
//
// docs/simulation.md says where each default comes from. Plain data and pure functions: any thread.
#pragma once

#include <cstdint>
#include <string>

#include "common/status.h"
#include "tools/ferrysim/time.h"

namespace ferry::sim {

// ---- The switches between two nodes, and the links that they share with others ----

// Routes are minimal. Links inside a group (dragonfly) or a pod (fat tree) are taken to be never
// the bottleneck. Those between are: all links from one group to another, or from one leaf up, are
// one server with their joint bandwidth, an approximation that neither hashes flows onto links nor
// routes adaptively around a full one.
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

struct Machine {
  uint32_t ranks_per_node = 8;
  uint32_t nics_per_node = 4;
  Topology topology;
  Time switch_latency = 350 * kNanosecond;  // each, with its cable
  LogGp nic = {.latency = 700 * kNanosecond,
               .overhead = 300 * kNanosecond,
               .gap = 5 * kNanosecond,
               .gap_per_byte_ps = 40};

  // Deferred work of a NIC.
  uint32_t entries = 504;
  Time trigger_latency = 200 * kNanosecond;  // from the counter to the operation
  Time atomic_latency = 600 * kNanosecond;   // of an atomic on memory of its own node
  // The software engine of a node's daemon, which runs operations that find no entry.
  Time daemon_delay = 1000 * kNanosecond;  // until it has seen the trigger
  Time daemon_cost = 500 * kNanosecond;    // of its core, for each operation

  // A GPU's stream. The CPU takes `launch_cost` for each operation that it enqueues.
  Time launch_cost = 2600 * kNanosecond;
  Time launch_latency = 3500 * kNanosecond;  // until an idle stream begins
  Time synchronise_cost = 3500 * kNanosecond;
  Time stream_operation = 1500 * kNanosecond;  // a write to a word, or a wait for one
  Time poll_latency = 500 * kNanosecond;       // until a waiting stream sees a word's change
  Time pack_kernel = 5200 * kNanosecond;       // of one message; unpack alike
  Time compute_kernel = 5000 * kNanosecond;    // without its cells
  double pack_ps_per_byte = 1;                 // device memory: read and written
  Time arm_cost = 1300 * kNanosecond;          // of the CPU, for each deferred operation
  // How much longer launches and arming take for each other rank of the node, in per cent.
  double contention_percent = 2.5;

  // Messages that CPUs send.
  Time match_cost = 800 * kNanosecond;       // of the receiver's CPU, for each message
  uint64_t eager_bytes = 8192;               // shorter ones are sent at once
  Time memory_latency = 500 * kNanosecond;   // of a notice to another rank of the node
  uint64_t device_copy_bytes = 1024;         // from this size on copied by a GPU inside a node
  Time device_copy_cost = 8 * kMicrosecond;  // of the receiver's CPU, to begin one
  uint64_t device_copy_ps_per_byte = 20;     // inside a node, by a CPU or a GPU
  Time reduce_cost = 100 * kNanosecond;      // of a reduction or a copy in memory
  uint64_t reduce_ps_per_byte = 100;
};

// kInvalidArgument names the numbers that make no sense.
Status CheckMachine(const Machine& machine);

}  // namespace ferry::sim
