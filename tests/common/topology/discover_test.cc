#include "common/topology/discover.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>

#include "common/topology/affinity.h"

namespace ferry::topology {
namespace {

// hwloc lets go of this library while it still holds memory: as long as it is loaded, that is no
// leak to LeakSanitizer.
[[maybe_unused]] const void* const kPciAccess = dlopen("libpciaccess.so.0", RTLD_LAZY);

TEST(DiscoverTest, ReadsThisMachine) {
  const StatusOr<Machine> machine = ReadThisMachine();
  ASSERT_TRUE(machine.ok()) << machine.status().message();
  EXPECT_FALSE(machine->cores.empty());
  ASSERT_FALSE(machine->nodes.empty());
  const StatusOr<CpuSet> ours = AffinityOf(0);
  ASSERT_TRUE(ours.ok());
  for (const Device& device : machine->devices) {
    EXPECT_FALSE(device.cpus.empty()) << device.pci;
  }
  // Every CPU that we may use belongs to a core and to a node.
  for (uint32_t cpu = 0; cpu < kMaxCpus; ++cpu) {
    const auto holds = [cpu](const CpuSet& set) { return set.Contains(cpu); };
    bool in_core = false;
    bool in_node = false;
    for (const CpuSet& core : machine->cores) {
      in_core |= holds(core);
    }
    for (const NumaNode& node : machine->nodes) {
      in_node |= holds(node.cpus);
    }
    EXPECT_TRUE(!holds(*ours) || (in_core && in_node)) << cpu;
  }
}

TEST(DiscoverTest, LeavesOutDevicesOnly) {
  const StatusOr<Machine> all = ReadThisMachine();
  const StatusOr<Machine> without = ReadThisMachine(Devices::kLeaveOut);
  ASSERT_TRUE(all.ok() && without.ok());
  EXPECT_FALSE(all->has_left_out_devices);
  EXPECT_TRUE(without->has_left_out_devices);
  EXPECT_TRUE(without->devices.empty());
  EXPECT_EQ(without->cores.size(), all->cores.size());
  EXPECT_EQ(without->sockets.size(), all->sockets.size());
  EXPECT_EQ(without->nodes.size(), all->nodes.size());
  EXPECT_EQ(without->distances, all->distances);
}

TEST(DiscoverTest, SaysWhichDescriptionItCannotRead) {
  for (const char* file : {"no/such.xml", "tests/common/topology/machines/broken.xml"}) {
    const StatusOr<Machine> machine = ReadMachine(file);
    ASSERT_FALSE(machine.ok());
    EXPECT_EQ(machine.status().code(), ErrorCode::kInvalidArgument);
    EXPECT_NE(machine.status().message().find(file), std::string::npos);
  }
}

class InterfacesTest : public testing::Test {
 protected:
  InterfacesTest() { EXPECT_NE(mkdtemp(root_.data()), nullptr); }
  ~InterfacesTest() override { std::filesystem::remove_all(root_); }
  void Make(const std::string& path) { std::filesystem::create_directories(root_ + "/" + path); }

  std::string root_ = "/tmp/ferry-interfaces-XXXXXX";
};

TEST_F(InterfacesTest, FollowsBondsAndVlansToTheirInterfaces) {
  Make("eth0/device");
  Make("bond0/lower_eth0");
  Make("bond0/lower_eth1");
  Make("bond0.100/lower_bond0");
  using Names = std::vector<std::string>;
  EXPECT_EQ(InterfaceAndLower("eth0", root_), (Names{"eth0"}));
  EXPECT_EQ(InterfaceAndLower("bond0.100", root_), (Names{"bond0.100", "bond0", "eth0", "eth1"}));
}

TEST_F(InterfacesTest, AreWithoutDeviceOnlyIfTheKernelSaysSo) {
  Make("eth0/device");
  Make("lo");
  Make("bond0/lower_eth0");
  EXPECT_TRUE(AreWithoutDevice({"lo"}, root_));
  EXPECT_FALSE(AreWithoutDevice({"lo", "eth0"}, root_));
  EXPECT_FALSE(AreWithoutDevice(InterfaceAndLower("bond0", root_), root_));
  EXPECT_FALSE(AreWithoutDevice({"mlx5_0"}, root_));  // it goes by this name elsewhere
}

TEST_F(InterfacesTest, ALoopEnds) {
  Make("a/lower_b");
  Make("b/lower_a");
  EXPECT_EQ(InterfaceAndLower("a", root_).size(), 2U);
}

TEST_F(InterfacesTest, TakesNoPaths) {
  Make("x/lower_y");
  EXPECT_TRUE(InterfaceAndLower("x/../x", root_).empty());
  EXPECT_TRUE(InterfaceAndLower("..", root_).empty());
  EXPECT_TRUE(InterfaceAndLower("", root_).empty());
}

}  // namespace
}  // namespace ferry::topology
