#include "common/topology/discover.h"

#include <hwloc.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <system_error>

namespace ferry::topology {
namespace {

// Parts of hwloc that are switched off. They start drivers of GPUs, ask an X server, or move the
// caller from CPU to CPU, and Ferry does not use their results.
constexpr const char* kLeftOut[] = {"opencl", "gl", "cuda", "nvml", "rsmi", "levelzero", "x86"};

using PciDevice = hwloc_obj_attr_u::hwloc_pcidev_attr_s;

constexpr unsigned kNetworkClass = 0x02;
constexpr unsigned kDisplayClass = 0x03;
constexpr unsigned kAcceleratorClass = 0x12;

struct TopologyDeleter {
  void operator()(hwloc_topology_t topology) const { hwloc_topology_destroy(topology); }
};
using TopologyPtr = std::unique_ptr<hwloc_topology, TopologyDeleter>;

// Not loaded yet; null if there is no memory.
TopologyPtr MakeTopology() {
  hwloc_topology_t topology = nullptr;
  if (hwloc_topology_init(&topology) != 0) {
    return nullptr;
  }
  for (const char* part : kLeftOut) {  // those that hwloc does not have are refused: fine
    hwloc_topology_set_components(topology, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, part);
  }
  hwloc_topology_set_io_types_filter(topology, HWLOC_TYPE_FILTER_KEEP_IMPORTANT);
  return TopologyPtr(topology);
}

CpuSet ToCpuSet(hwloc_const_bitmap_t bitmap) {
  CpuSet cpus;
  for (int cpu = hwloc_bitmap_first(bitmap); cpu >= 0 && cpu < static_cast<int>(kMaxCpus);
       cpu = hwloc_bitmap_next(bitmap, cpu)) {
    cpus.Add(static_cast<uint32_t>(cpu));
  }
  return cpus;
}

// The objects of a type, in hwloc's order.
std::vector<hwloc_obj_t> Objects(hwloc_topology_t topology, hwloc_obj_type_t type) {
  std::vector<hwloc_obj_t> objects;
  for (hwloc_obj_t object = nullptr;
       (object = hwloc_get_next_obj_by_type(topology, type, object)) != nullptr;) {
    objects.push_back(object);
  }
  return objects;
}

std::vector<std::vector<uint32_t>> ReadDistances(hwloc_topology_t topology,
                                                 const std::vector<hwloc_obj_t>& nodes) {
  unsigned count = 1;
  hwloc_distances_s* found = nullptr;
  if (hwloc_distances_get_by_type(topology, HWLOC_OBJ_NUMANODE, &count, &found,
                                  HWLOC_DISTANCES_KIND_MEANS_LATENCY, 0) != 0 ||
      count == 0) {
    return {};
  }
  std::vector<std::vector<uint32_t>> distances;
  for (const hwloc_obj_t from : nodes) {
    std::vector<uint32_t>& row = distances.emplace_back();
    for (const hwloc_obj_t to : nodes) {
      const int i = hwloc_distances_obj_index(found, from);
      const int j = hwloc_distances_obj_index(found, to);
      const uint32_t otherwise = from == to ? kSameNode : kOtherNode;
      row.push_back(i < 0 || j < 0 ? otherwise
                                   : static_cast<uint32_t>(found->values[i * found->nbobjs + j]));
    }
  }
  hwloc_distances_release(topology, found);
  return distances;
}

std::optional<DeviceKind> KindOf(const PciDevice& pci) {
  switch (pci.class_id >> 8) {
    case kNetworkClass:
      return DeviceKind::kNic;
    case kDisplayClass:
    case kAcceleratorClass:
      return DeviceKind::kGpu;
    default:
      return std::nullopt;
  }
}

std::string PciText(const PciDevice& pci) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%04x:%02x:%02x.%x", static_cast<unsigned>(pci.domain),
                pci.bus, pci.dev, pci.func);
  return text.data();
}

bool IsPciBridge(hwloc_obj_t object) {
  return object->type == HWLOC_OBJ_BRIDGE &&
         object->attr->bridge.upstream_type == HWLOC_OBJ_BRIDGE_PCI;
}

Device ReadDevice(hwloc_topology_t topology, hwloc_obj_t object, DeviceKind kind) {
  Device device;
  device.kind = kind;
  device.pci = PciText(object->attr->pcidev);
  for (hwloc_obj_t part = object->io_first_child; part != nullptr; part = part->next_sibling) {
    if (part->type == HWLOC_OBJ_OS_DEVICE && part->name != nullptr) {
      device.names.emplace_back(part->name);
    }
  }
  for (hwloc_obj_t above = object->parent; above != nullptr; above = above->parent) {
    if (IsPciBridge(above)) {
      device.bridges.push_back(above->gp_index);
    }
  }
  hwloc_obj_t root = hwloc_get_non_io_ancestor_obj(topology, object);
  device.cpus = ToCpuSet(root->cpuset);
  // Takes the first of several nodes: ordinary memory comes before memory of other kinds.
  device.node = static_cast<uint32_t>(std::max(hwloc_bitmap_first(root->nodeset), 0));
  return device;
}

// Loads the topology as it was set up.
StatusOr<Machine> Load(TopologyPtr topology, ErrorCode error, const std::string& what) {
  if (topology == nullptr || hwloc_topology_load(topology.get()) != 0) {
    return Status(error, "hwloc cannot read " + what);
  }
  Machine machine;
  for (const hwloc_obj_t core : Objects(topology.get(), HWLOC_OBJ_CORE)) {
    machine.cores.push_back(ToCpuSet(core->cpuset));
  }
  for (const hwloc_obj_t cache : Objects(topology.get(), HWLOC_OBJ_L3CACHE)) {
    machine.caches.push_back(ToCpuSet(cache->cpuset));
  }
  for (const hwloc_obj_t socket : Objects(topology.get(), HWLOC_OBJ_PACKAGE)) {
    machine.sockets.push_back(ToCpuSet(socket->cpuset));
  }
  if (machine.sockets.empty()) {
    machine.sockets.push_back(ToCpuSet(hwloc_get_root_obj(topology.get())->cpuset));
  }
  const std::vector<hwloc_obj_t> nodes = Objects(topology.get(), HWLOC_OBJ_NUMANODE);
  for (const hwloc_obj_t node : nodes) {
    machine.nodes.push_back(
        {node->os_index, ToCpuSet(node->cpuset), node->attr->numanode.local_memory});
  }
  machine.distances = ReadDistances(topology.get(), nodes);
  for (const hwloc_obj_t object : Objects(topology.get(), HWLOC_OBJ_PCI_DEVICE)) {
    if (const std::optional<DeviceKind> kind = KindOf(object->attr->pcidev)) {
      machine.devices.push_back(ReadDevice(topology.get(), object, *kind));
    }
  }
  std::sort(machine.devices.begin(), machine.devices.end(),
            [](const Device& a, const Device& b) { return a.pci < b.pci; });
  return machine;
}

void AddInterface(const std::string& name, const std::filesystem::path& interfaces,
                  std::vector<std::string>* names) {
  if (std::find(names->begin(), names->end(), name) != names->end()) {
    return;
  }
  names->push_back(name);
  constexpr std::string_view kLower = "lower_";
  std::vector<std::string> lower;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(interfaces / name, error), end;
       !error && entry != end; entry.increment(error)) {
    const std::string file = entry->path().filename().string();
    if (file.starts_with(kLower)) {
      lower.push_back(file.substr(kLower.size()));
    }
  }
  std::sort(lower.begin(), lower.end());
  for (const std::string& one : lower) {
    AddInterface(one, interfaces, names);
  }
}

}  // namespace

StatusOr<Machine> ReadThisMachine(Devices devices) {
  TopologyPtr topology = MakeTopology();
  if (topology != nullptr && devices == Devices::kLeaveOut) {
    hwloc_topology_set_io_types_filter(topology.get(), HWLOC_TYPE_FILTER_KEEP_NONE);
  }
  StatusOr<Machine> machine =
      Load(std::move(topology), ErrorCode::kSystem, "the topology of this machine");
  if (machine.ok()) {
    machine->has_left_out_devices = devices == Devices::kLeaveOut;
  }
  return machine;
}

StatusOr<Machine> ReadMachine(const std::string& xml_file) {
  TopologyPtr topology = MakeTopology();
  if (topology == nullptr || hwloc_topology_set_xml(topology.get(), xml_file.c_str()) != 0) {
    return Status(ErrorCode::kInvalidArgument, "hwloc cannot read " + xml_file);
  }
  return Load(std::move(topology), ErrorCode::kInvalidArgument, xml_file);
}

std::vector<std::string> InterfaceAndLower(const std::string& name, const std::string& interfaces) {
  std::vector<std::string> names;
  if (!name.empty() && name.find('/') == std::string::npos && name[0] != '.') {
    AddInterface(name, interfaces, &names);
  }
  return names;
}

bool AreWithoutDevice(const std::vector<std::string>& names, const std::string& interfaces) {
  return std::all_of(names.begin(), names.end(), [&](const std::string& name) {
    const auto interface = std::filesystem::path(interfaces) / name;
    std::error_code error;
    return std::filesystem::exists(interface, error) &&
           !std::filesystem::exists(interface / "device", error);
  });
}

}  // namespace ferry::topology
