// Distances on a machine of two sockets, each with an InfiniBand NIC and a GPU behind one PCI
// switch; the first one also has two Ethernet ports and another GPU.
#include "common/topology/machine.h"

#include <gtest/gtest.h>

#include "common/topology/discover.h"

namespace ferry::topology {
namespace {

class MachineTest : public testing::Test {
 protected:
  void SetUp() override {
    StatusOr<Machine> machine = ReadMachine("tests/common/topology/machines/two_sockets.xml");
    ASSERT_TRUE(machine.ok()) << machine.status().message();
    machine_ = std::move(*machine);
  }
  const Device* Find(const std::string& name) const {
    const Device* device = FindDevice(machine_, "", {{name}});
    EXPECT_NE(device, nullptr) << name;
    return device;
  }
  const Device* At(const std::string& pci) const { return FindDevice(machine_, pci, {}); }

  Machine machine_;
  const CpuSet first_ = *CpuSet::Parse("0-7");
  const CpuSet second_ = *CpuSet::Parse("8-15");
  const CpuSet all_ = *CpuSet::Parse("0-15");
};

TEST_F(MachineTest, ReadsCoresAndNodes) {
  EXPECT_EQ(machine_.cores.size(), 8U);
  EXPECT_EQ(machine_.cores[1], (CpuSet{2, 3}));
  ASSERT_EQ(machine_.nodes.size(), 2U);
  EXPECT_EQ(machine_.nodes[1].number, 1U);
  EXPECT_EQ(machine_.nodes[1].cpus, second_);
  EXPECT_EQ(machine_.nodes[1].memory_bytes, 16'000'000'000U);
  EXPECT_EQ(machine_.distances, (std::vector<std::vector<uint32_t>>{{10, 21}, {21, 10}}));
}

TEST_F(MachineTest, ReadsNicsAndGpusAndNothingElse) {
  std::string nics;
  std::string gpus;
  for (const Device& device : machine_.devices) {
    (device.kind == DeviceKind::kNic ? nics : gpus) += device.pci + " ";
  }
  EXPECT_EQ(nics, "0000:17:00.0 0000:17:00.1 0000:3b:00.0 0000:b1:00.0 ");
  EXPECT_EQ(gpus, "0000:1a:00.0 0000:3d:00.0 0000:b3:00.0 0000:d8:00.0 ");
  const Device* nic = At("0000:b1:00.0");
  ASSERT_NE(nic, nullptr);
  EXPECT_EQ(nic->names, (std::vector<std::string>{"ib1", "mlx5_1"}));
  EXPECT_EQ(nic->node, 1U);
  EXPECT_EQ(nic->cpus, second_);
}

TEST_F(MachineTest, FindsDevicesByAddressThenByName) {
  const std::vector<std::string> names = {"bond0", "eth1"};
  EXPECT_EQ(FindDevice(machine_, "0000:3b:00.0", names), Find("mlx5_0"));
  EXPECT_EQ(FindDevice(machine_, "", names), At("0000:17:00.1"));
  EXPECT_EQ(FindDevice(machine_, "0000:ff:00.0", {}), nullptr);
  EXPECT_EQ(FindDevice(machine_, "", {}), nullptr);
}

TEST_F(MachineTest, MeasuresDistances) {
  const Device& nic = *Find("mlx5_0");
  EXPECT_EQ(Distance(machine_, nic, first_), kSameNode);
  EXPECT_EQ(Distance(machine_, nic, second_), 21U);
  EXPECT_EQ(Distance(machine_, nic, CpuSet{7, 8}), kSameNode);
  EXPECT_EQ(Distance(machine_, nic, CpuSet{99}), std::nullopt);
  EXPECT_EQ(Distance(machine_, nic, *Find("card1")), kSameBridge);
  EXPECT_EQ(Distance(machine_, nic, *Find("card0")), kSameNode);
  EXPECT_EQ(Distance(machine_, nic, *Find("card2")), 21U);
  EXPECT_EQ(Distance(machine_, *Find("eth0"), *Find("eth1")), kSameBridge);
}

TEST_F(MachineTest, HasDistancesWhereTheFirmwareTellsNone) {
  machine_.distances.clear();
  EXPECT_EQ(Distance(machine_, *Find("mlx5_0"), second_), kOtherNode);
  EXPECT_EQ(Distance(machine_, *Find("mlx5_0"), *Find("card2")), kOtherNode);
}

TEST_F(MachineTest, PlacesAThreadOnTheCoresNearItsNic) {
  EXPECT_EQ(PlaceThread(machine_, Find("mlx5_1"), all_).cpus, second_);
  EXPECT_EQ(PlaceThread(machine_, Find("mlx5_1"), all_).why, "near its NIC, at NUMA node 1");
  EXPECT_EQ(PlaceThread(machine_, Find("eth0"), all_).cpus, first_);
  EXPECT_EQ(PlaceThread(machine_, Find("eth0"), *CpuSet::Parse("1,3,5,7,9")).cpus,
            (CpuSet{1, 3, 5, 7}));
}

TEST_F(MachineTest, LeavesAThreadAloneWhereAPlaceWouldNotHelp) {
  EXPECT_TRUE(PlaceThread(machine_, nullptr, all_).cpus.empty());
  // Seven hardware threads, but three cores.
  const ThreadPlace crowded = PlaceThread(machine_, Find("mlx5_0"), *CpuSet::Parse("0-5,8-15"));
  EXPECT_TRUE(crowded.cpus.empty());
  EXPECT_NE(crowded.why.find("fewer than 4 cores near its NIC"), std::string::npos) << crowded.why;
  EXPECT_TRUE(PlaceThread(machine_, Find("mlx5_0"), second_).cpus.empty());
  machine_.nodes.pop_back();
  EXPECT_TRUE(PlaceThread(machine_, Find("mlx5_0"), all_).cpus.empty());
  EXPECT_EQ(PlaceMemory(machine_, Find("mlx5_0")), std::nullopt);
}

TEST_F(MachineTest, PlacesMemoryOnTheNodeOfItsDevice) {
  EXPECT_EQ(PlaceMemory(machine_, Find("mlx5_1")), 1U);
  EXPECT_EQ(PlaceMemory(machine_, Find("card0")), 0U);
  EXPECT_EQ(PlaceMemory(machine_, nullptr), std::nullopt);
}

TEST_F(MachineTest, GivesEachRankItsNearestNic) {
  const std::vector<const Device*> nics = {Find("mlx5_0"), Find("mlx5_1")};
  EXPECT_EQ(ChooseNic(machine_, nics, {CpuSet{2, 3}, nullptr, 1}), 0U);
  EXPECT_EQ(ChooseNic(machine_, nics, {CpuSet{8}, nullptr, 0}), 1U);
}

TEST_F(MachineTest, TheGpuCountsBeforeTheCores) {
  const std::vector<const Device*> nics = {Find("eth0"), Find("mlx5_0"), Find("mlx5_1")};
  EXPECT_EQ(ChooseNic(machine_, nics, {CpuSet{8}, Find("card1"), 0}), 1U);
  EXPECT_EQ(ChooseNic(machine_, nics, {first_, Find("card2"), 0}), 2U);
  // Two NICs are as near to this one; the cores decide nothing more, so ranks take turns.
  EXPECT_EQ(ChooseNic(machine_, nics, {first_, Find("card0"), 0}), 0U);
  EXPECT_EQ(ChooseNic(machine_, nics, {first_, Find("card0"), 1}), 1U);
}

TEST_F(MachineTest, RanksTakeEqualNicsInTurn) {
  const std::vector<const Device*> nics = {Find("mlx5_0"), Find("eth0"), Find("eth1")};
  for (uint32_t rank = 0; rank < 6; ++rank) {
    EXPECT_EQ(ChooseNic(machine_, nics, {CpuSet{0}, nullptr, rank}), rank % 3);
    EXPECT_EQ(ChooseNic(machine_, nics, {all_, nullptr, rank}), rank % 3);  // not bound
  }
}

TEST_F(MachineTest, AnUnknownNicIsTheFarthest) {
  const std::vector<const Device*> nics = {nullptr, Find("mlx5_1"), nullptr};
  EXPECT_EQ(ChooseNic(machine_, nics, {CpuSet{0}, nullptr, 0}), 1U);
  const std::vector<const Device*> unknown = {nullptr, nullptr};
  EXPECT_EQ(ChooseNic(machine_, unknown, {CpuSet{0}, Find("card0"), 3}), 1U);
}

}  // namespace
}  // namespace ferry::topology
