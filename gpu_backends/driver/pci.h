// Where a device is on the PCI bus, and which NUMA node that is near.
//
// Calling thread: any.
#pragma once

#include <string>
#include <string_view>

namespace ferry::gpu {

// As the kernel writes addresses ("0000:3b:00.0"), from what a vendor wrote: some use capitals.
std::string KernelPciAddress(std::string_view vendors);

// Of a device at an address in the kernel's form; -1: unknown. Reads `folder`, which holds a folder
// for each device.
int PciNumaNode(const std::string& address, const std::string& folder = "/sys/bus/pci/devices");

}  // namespace ferry::gpu
