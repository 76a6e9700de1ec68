// The address of a device on the PCI bus, and its nearest NUMA node.
//
// Calling thread: any.
#pragma once

#include <string>
#include <string_view>

namespace ferry::gpu {

// Returns a vendor's address in the kernel's form ("0000:3b:00.0"): some vendors use capitals.
std::string KernelPciAddress(std::string_view vendors);

// Returns the NUMA node of the device at an address in the kernel's form; -1: unknown. Reads
// `folder`, which holds a folder for each device.
int PciNumaNode(const std::string& address, const std::string& folder = "/sys/bus/pci/devices");

}  // namespace ferry::gpu
