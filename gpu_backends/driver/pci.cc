#include "gpu_backends/driver/pci.h"

#include <fstream>

namespace ferry::gpu {

std::string KernelPciAddress(std::string_view vendors) {
  std::string address(vendors);
  for (char& letter : address) {
    if (letter >= 'A' && letter <= 'F') {
      letter = static_cast<char>(letter - 'A' + 'a');
    }
  }
  return address;
}

int PciNumaNode(const std::string& address, const std::string& folder) {
  std::ifstream file(folder + "/" + address + "/numa_node");
  int node = -1;
  return file >> node && node >= 0 ? node : -1;
}

}  // namespace ferry::gpu
