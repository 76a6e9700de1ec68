#include "common/topology/machine.h"

#include <algorithm>
#include <tuple>

namespace ferry::topology {
namespace {

// One for the thread, and some for the ranks that were put there for the same reason.
constexpr size_t kEnoughCores = 4;

uint32_t NodeDistance(const Machine& machine, size_t from, size_t to) {
  if (!machine.distances.empty()) {
    return machine.distances[from][to];
  }
  return from == to ? kSameNode : kOtherNode;
}

std::optional<size_t> NodeIndex(const Machine& machine, uint32_t number) {
  for (size_t i = 0; i < machine.nodes.size(); ++i) {
    if (machine.nodes[i].number == number) {
      return i;
    }
  }
  return std::nullopt;
}

size_t CountCores(const Machine& machine, const CpuSet& cpus) {
  return static_cast<size_t>(
      std::count_if(machine.cores.begin(), machine.cores.end(),
                    [&cpus](const CpuSet& core) { return core.Intersects(cpus); }));
}

// Unknown is farther than anything known.
uint32_t OrFar(std::optional<uint32_t> distance) { return distance.value_or(UINT32_MAX); }

}  // namespace

const Device* FindDevice(const Machine& machine, std::string_view pci,
                         std::span<const std::string> names) {
  for (const Device& device : machine.devices) {
    if (!pci.empty() && device.pci == pci) {
      return &device;
    }
  }
  for (const Device& device : machine.devices) {
    if (std::find_first_of(device.names.begin(), device.names.end(), names.begin(), names.end()) !=
        device.names.end()) {
      return &device;
    }
  }
  return nullptr;
}

std::optional<uint32_t> Distance(const Machine& machine, const Device& from, const CpuSet& to) {
  if (from.cpus.Intersects(to)) {
    return kSameNode;
  }
  const std::optional<size_t> own = NodeIndex(machine, from.node);
  std::optional<uint32_t> least;
  for (size_t i = 0; own && i < machine.nodes.size(); ++i) {
    if (machine.nodes[i].cpus.Intersects(to)) {
      least = std::min(OrFar(least), NodeDistance(machine, *own, i));
    }
  }
  return least;
}

uint32_t Distance(const Machine& machine, const Device& from, const Device& to) {
  if (std::find_first_of(from.bridges.begin(), from.bridges.end(), to.bridges.begin(),
                         to.bridges.end()) != from.bridges.end()) {
    return kSameBridge;
  }
  const std::optional<size_t> first = NodeIndex(machine, from.node);
  const std::optional<size_t> second = NodeIndex(machine, to.node);
  return first && second ? NodeDistance(machine, *first, *second) : kOtherNode;
}

ThreadPlace PlaceThread(const Machine& machine, const Device* nic, const CpuSet& allowed) {
  if (machine.nodes.size() < 2) {
    return {{}, "there is no other NUMA node"};
  }
  if (nic == nullptr) {
    return {{}, "it is not known where its NIC is"};
  }
  const std::string node = "NUMA node " + std::to_string(nic->node);
  const CpuSet near = nic->cpus.Intersection(allowed);
  if (CountCores(machine, near) < kEnoughCores) {
    return {{},
            "fewer than " + std::to_string(kEnoughCores) + " cores near its NIC, at " + node +
                ", are ferryd's to use"};
  }
  return {near, "near its NIC, at " + node};
}

std::optional<uint32_t> PlaceMemory(const Machine& machine, const Device* device) {
  if (machine.nodes.size() < 2 || device == nullptr) {
    return std::nullopt;
  }
  return device->node;
}

size_t ChooseNic(const Machine& machine, std::span<const Device* const> nics,
                 const RankPlace& rank) {
  const auto far = [&](const Device* nic) {
    if (nic == nullptr) {
      return std::tuple(UINT32_MAX, UINT32_MAX);
    }
    return std::tuple(rank.gpu == nullptr ? 0 : Distance(machine, *nic, *rank.gpu),
                      OrFar(Distance(machine, *nic, rank.cpus)));
  };
  std::vector<size_t> nearest;
  for (size_t i = 0; i < nics.size(); ++i) {
    if (!nearest.empty() && far(nics[i]) < far(nics[nearest.front()])) {
      nearest.clear();
    }
    if (nearest.empty() || far(nics[i]) == far(nics[nearest.front()])) {
      nearest.push_back(i);
    }
  }
  return nearest[rank.index % nearest.size()];
}

}  // namespace ferry::topology
