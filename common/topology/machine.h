// Which CPUs, NUMA nodes, NICs and GPUs of this node are near each other, and the choices that
// follow. (GPU-aware MPI for Intel GPUs, section IV-C: the process on the socket of its GPU, with
// the nearest NIC.)
//
// Plain data and pure functions: any thread, nothing blocks. discover.h fills a Machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/topology/cpu_set.h"

namespace ferry::topology {

enum class DeviceKind { kNic, kGpu };

struct Device {
  DeviceKind kind = DeviceKind::kNic;
  std::string pci;                 // "0000:3b:00.0"
  std::vector<std::string> names;  // what the kernel calls it: "ib0", "mlx5_0"; may be empty
  CpuSet cpus;                     // that share its root of the PCI bus
  uint32_t node = 0;               // NUMA node by its number
  std::vector<uint64_t> bridges;   // PCI bridges above it; two devices may share some
};

struct NumaNode {
  uint32_t number = 0;
  CpuSet cpus;  // none for memory without CPUs
  uint64_t memory_bytes = 0;
};

struct Machine {
  std::vector<CpuSet> cores;    // the hardware threads of each
  std::vector<CpuSet> caches;   // the same, of each cache of the third level; none: none is known
  std::vector<CpuSet> sockets;  // the same; all in one where the firmware tells of none
  std::vector<NumaNode> nodes;  // at least one
  // The distances from nodes[i] to nodes[j], as the firmware counts: 10 is the own node. Empty if
  // it tells none.
  std::vector<std::vector<uint32_t>> distances;
  std::vector<Device> devices;        // by PCI address
  bool has_left_out_devices = false;  // they were not read
};

// Distances are those of the firmware, and one below them.
inline constexpr uint32_t kSameBridge = 5;  // a device behind the same PCI bridge
inline constexpr uint32_t kSameNode = 10;
inline constexpr uint32_t kOtherNode = 20;  // where the firmware tells nothing

// The device with this PCI address, or else the first that goes by one of these names; null if
// there is none.
const Device* FindDevice(const Machine& machine, std::string_view pci,
                         std::span<const std::string> names);

// The distance from a device to the nearest of these CPUs; nothing if no NUMA node has any of them.
std::optional<uint32_t> Distance(const Machine& machine, const Device& from, const CpuSet& to);
uint32_t Distance(const Machine& machine, const Device& from, const Device& to);

// A device that may not be known, as loopback interfaces and emulated GPUs are, has null.

struct ThreadPlace {
  CpuSet cpus;      // empty: anywhere
  std::string why;  // a phrase that says so, for people
};
// Where a thread that serves this NIC should run: on the cores near it, if there is another place
// to be, and if they are enough for it and for ranks. `allowed`: where it may.
ThreadPlace PlaceThread(const Machine& machine, const Device* nic, const CpuSet& allowed);
// The NUMA node from which to take memory for this NIC or GPU; nothing: from any.
std::optional<uint32_t> PlaceMemory(const Machine& machine, const Device* device);

struct RankPlace {
  CpuSet cpus;                  // on which it may run
  const Device* gpu = nullptr;  // whose memory it sends; null: unknown or none
  uint32_t index = 0;           // among the ranks of this node
};
// The index of the NIC that this rank should use: the nearest to its GPU, then to its cores; ranks
// for which several are as near take them in turn. `nics` is not empty.
size_t ChooseNic(const Machine& machine, std::span<const Device* const> nics,
                 const RankPlace& rank);

}  // namespace ferry::topology
