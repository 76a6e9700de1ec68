#include "gpu_backends/driver/pci.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace ferry::gpu {
namespace {

TEST(PciTest, WritesAddressesAsTheKernelDoes) {
  EXPECT_EQ(KernelPciAddress("0000:3B:00.0"), "0000:3b:00.0");
  EXPECT_EQ(KernelPciAddress("000a:af:1F.7"), "000a:af:1f.7");
}

TEST(PciTest, ReadsTheNodeOfADevice) {
  const std::filesystem::path folder = std::filesystem::path(testing::TempDir()) / "pci_test";
  const auto write = [&](const char* address, const char* text) {
    std::filesystem::create_directories(folder / address);
    std::ofstream(folder / address / "numa_node") << text;
  };
  write("0000:01:00.0", "3\n");
  write("0000:02:00.0", "-1\n");
  write("0000:03:00.0", "what?\n");
  EXPECT_EQ(PciNumaNode("0000:01:00.0", folder.string()), 3);
  EXPECT_EQ(PciNumaNode("0000:02:00.0", folder.string()), -1);
  EXPECT_EQ(PciNumaNode("0000:03:00.0", folder.string()), -1);
  EXPECT_EQ(PciNumaNode("0000:04:00.0", folder.string()), -1);
}

}  // namespace
}  // namespace ferry::gpu
