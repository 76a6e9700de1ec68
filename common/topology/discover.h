// Finds out what a machine is made of, with hwloc. Any thread; may block for the files of /sys.
#pragma once

#include <string>
#include <vector>

#include "common/status.h"
#include "common/topology/machine.h"

namespace ferry::topology {

// This machine, but for the CPUs and NUMA nodes that its control groups keep from this process.
// Errors: kSystem.
StatusOr<Machine> ReadThisMachine();
// A machine that hwloc has described (`lstopo machine.xml`). Errors: kInvalidArgument.
StatusOr<Machine> ReadMachine(const std::string& xml_file);

// The interface itself, then those that it uses (of a bond, a bridge, a VLAN). `interfaces` is the
// kernel's list of them.
std::vector<std::string> InterfaceAndLower(const std::string& name,
                                           const std::string& interfaces = "/sys/class/net");

}  // namespace ferry::topology
