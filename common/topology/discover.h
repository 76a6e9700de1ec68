// Reads the parts of a machine (CPUs, NUMA nodes, devices) with hwloc. Any thread; may block for
// the files of /sys.
#pragma once

#include <string>
#include <vector>

#include "common/status.h"
#include "common/topology/machine.h"

namespace ferry::topology {

// An environment variable, and its value, for a program that starts often, to be set before the
// first call: hwloc opens its plugins, and the libraries of X11, OpenCL and XML with them, before
// it can be told to leave them out. This library never changes the environment.
inline constexpr char kPluginsVariable[] = "HWLOC_PLUGINS_BLACKLIST";
inline constexpr char kPluginsLeftOut[] =
    "hwloc_gl.so,hwloc_opencl.so,hwloc_cuda.so,hwloc_nvml.so,hwloc_rsmi.so,hwloc_levelzero.so,"
    "hwloc_xml_libxml.so";

// Reading the PCI devices' registers takes milliseconds for each on a virtual machine.
enum class Devices { kRead, kLeaveOut };
// Reads this machine, but for the CPUs and NUMA nodes that its control groups keep from this
// process. Errors: kSystem.
StatusOr<Machine> ReadThisMachine(Devices devices = Devices::kRead);
// Reads a machine that hwloc has described (`lstopo machine.xml`). Errors: kInvalidArgument.
StatusOr<Machine> ReadMachine(const std::string& xml_file);

// Returns the interface itself, then those that it uses (of a bond, a bridge, a VLAN). `interfaces`
// is the kernel's list of them.
std::vector<std::string> InterfaceAndLower(const std::string& name,
                                           const std::string& interfaces = "/sys/class/net");
// Returns true if there is no device behind these interfaces, as for loopback.
bool AreWithoutDevice(const std::vector<std::string>& names,
                      const std::string& interfaces = "/sys/class/net");

}  // namespace ferry::topology
