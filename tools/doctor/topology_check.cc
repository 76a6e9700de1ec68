#include "tools/doctor/topology_check.h"

namespace ferry::tools {
namespace {

using topology::CpuSet;
using topology::Device;
using topology::DeviceKind;
using topology::Machine;

std::vector<const Device*> DevicesOf(const Machine& machine, DeviceKind kind) {
  std::vector<const Device*> devices;
  for (const Device& device : machine.devices) {
    if (device.kind == kind) {
      devices.push_back(&device);
    }
  }
  return devices;
}

std::string NameOf(const Device& device) {
  return device.names.empty() ? device.pci : device.names.front();
}

std::string AtNode(const Device& device) { return " at node " + std::to_string(device.node); }

std::string Describe(const Machine& machine) {
  std::string text = std::to_string(machine.nodes.size()) +
                     (machine.nodes.size() == 1 ? " NUMA node" : " NUMA nodes");
  for (const topology::NumaNode& node : machine.nodes) {
    text += ", " + std::to_string(node.number) + ": " +
            (node.cpus.empty() ? "no CPUs" : "CPUs " + node.cpus.Text());
  }
  const std::vector<const Device*> nics = DevicesOf(machine, DeviceKind::kNic);
  for (const Device* nic : nics) {
    text += "; NIC " + NameOf(*nic) + AtNode(*nic);
  }
  for (const Device* gpu : DevicesOf(machine, DeviceKind::kGpu)) {
    text += "; GPU " + gpu->pci + AtNode(*gpu);
    if (!nics.empty()) {
      const Device& nic = *nics[topology::ChooseNic(machine, nics, {gpu->cpus, gpu, 0})];
      text += ", " + std::to_string(topology::Distance(machine, *gpu, nic)) + " from NIC " +
              NameOf(nic);
    }
  }
  return text;
}

bool IsFar(const NicPlace& nic) {
  const StatusOr<CpuSet> near = CpuSet::Parse(nic.cpus);
  const StatusOr<CpuSet> thread = CpuSet::Parse(nic.progress_cpus);
  return near.ok() && thread.ok() && !near->Intersects(*thread);
}

}  // namespace

Finding CheckTopology(const StatusOr<Machine>& machine, const std::vector<NicPlace>& nics) {
  if (!machine.ok()) {
    return {"topology", Verdict::kWarning, machine.status().message() + ": nothing is placed",
            "see whether `lstopo` (hwloc) works here; /sys must be readable"};
  }
  Finding finding{"topology", Verdict::kOk, Describe(*machine), ""};
  for (const NicPlace& nic : nics) {
    if (IsFar(nic)) {
      finding.verdict = Verdict::kWarning;
      finding.found += "; the progress thread runs on CPUs " + nic.progress_cpus +
                       ", far from its NIC " + nic.name + " (CPUs " + nic.cpus + ")";
      finding.mend = "progress_affinity = \"auto\", or CPUs of these";
    }
  }
  return finding;
}

}  // namespace ferry::tools
