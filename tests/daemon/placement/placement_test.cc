// The placement that the options choose on two machines: one of two sockets, and one of one.
#include "daemon/placement/placement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>
#include <sys/mman.h>

#include <sstream>

#include "common/topology/discover.h"
#include "internode/staging/staging_pool.h"
#include "tests/internode/registration/test_registrar.h"

namespace ferry::daemon {
namespace {

using testing::HasSubstr;
using topology::CpuSet;

class PlacementTest : public testing::Test {
 protected:
  PlacementTest() {
    StatusOr<topology::Machine> machine =
        topology::ReadMachine("tests/common/topology/machines/two_sockets.xml");
    EXPECT_TRUE(machine.ok());
    machine_ = std::move(*machine);
    nic_.domain = "mlx5_1";
  }
  StatusOr<std::shared_ptr<const Placement>> Try() const {
    return Placement::Decide(options_, {nic_}, machine_, allowed_);
  }
  std::shared_ptr<const Placement> Decide() const {
    const auto placement = Try();
    EXPECT_TRUE(placement.ok()) << placement.status().message();
    return *placement;
  }
  void ExpectRefusal(const std::string& words) const {
    const Status status = Try().status();
    EXPECT_EQ(status.code(), ErrorCode::kConfiguration);
    EXPECT_THAT(status.message(), HasSubstr(words));
  }

  config::Options options_;
  transport::Description nic_;
  topology::Machine machine_;
  CpuSet allowed_ = *CpuSet::Parse("0-15");
};

TEST_F(PlacementTest, PutsThreadAndMemoryNearTheNic) {
  const auto placement = Decide();
  EXPECT_EQ(placement->progress_cpus().Text(), "8-15");
  EXPECT_EQ(placement->staging_node(), 1U);
  EXPECT_EQ(placement->Text(),
            "NIC mlx5_1: 0000:b1:00.0 at NUMA node 1, CPUs 8-15; progress thread on CPUs 8-15 "
            "(near its NIC, at NUMA node 1), staging memory from NUMA node 1");
}

TEST_F(PlacementTest, TrustsThePciAddressMoreThanTheName) {
  nic_.pci_address = "0000:3b:00.0";
  EXPECT_EQ(Decide()->staging_node(), 0U);
}

TEST_F(PlacementTest, KnowsHowFarItsNicIs) {
  const auto placement = Decide();
  EXPECT_EQ(placement->nic_name(), "mlx5_1");
  EXPECT_EQ(placement->DistanceTo(CpuSet{0}, 0), 21U);
  EXPECT_EQ(placement->DistanceTo(placement->Find("0000:b3:00.0")), 5U);
  EXPECT_EQ(placement->DistanceTo(placement->Find("")), std::nullopt);
}

TEST_F(PlacementTest, GivesEachRankTheNearestOfSeveralNics) {
  transport::Description near_first_socket;
  near_first_socket.pci_address = "0000:3b:00.0";
  const auto placement =
      *Placement::Decide(options_, {nic_, near_first_socket}, machine_, allowed_);
  EXPECT_EQ(placement->NicFor(CpuSet{0}, 0), 1U);
  EXPECT_EQ(placement->NicFor(CpuSet{0}, 1), 1U);
  EXPECT_EQ(placement->NicFor(CpuSet{8}, 0), 0U);
  EXPECT_EQ(placement->DistanceTo(CpuSet{0}, 1), 10U);
  EXPECT_EQ(placement->staging_node(), 1U);  // as the first NIC
  EXPECT_THAT(placement->Text(), HasSubstr("0000:3b:00.0"));
}

TEST_F(PlacementTest, RanksTakeNicsOfUnknownPlacesInTurn) {
  nic_.domain = "lo";
  const auto placement = *Placement::Decide(options_, {nic_, nic_}, machine_, allowed_);
  EXPECT_EQ(placement->NicFor(CpuSet{0}, 0), 0U);
  EXPECT_EQ(placement->NicFor(CpuSet{0}, 1), 1U);
  EXPECT_EQ(placement->NicFor(CpuSet{8}, 2), 0U);
}

TEST_F(PlacementTest, PlacesNothingWhereNothingIsKnown) {
  nic_.domain = "lo";
  const auto placement = Decide();
  EXPECT_TRUE(placement->progress_cpus().empty());
  EXPECT_EQ(placement->staging_node(), std::nullopt);
  EXPECT_EQ(placement->DistanceTo(CpuSet{0}, 0), std::nullopt);
  EXPECT_EQ(placement->Text(),
            "NIC lo: at an unknown place; progress thread on any CPU (it is not known where its "
            "NIC is), staging memory from any NUMA node");
}

TEST_F(PlacementTest, PlacesNothingOnAMachineOfOneNode) {
  machine_.nodes.pop_back();
  const auto placement = Decide();
  EXPECT_TRUE(placement->progress_cpus().empty());
  EXPECT_EQ(placement->staging_node(), std::nullopt);
}

TEST_F(PlacementTest, DoesAsTold) {
  options_.progress_affinity = "1,3";
  options_.staging_node = "0";
  EXPECT_EQ(Decide()->progress_cpus().Text(), "1,3");
  EXPECT_EQ(Decide()->staging_node(), 0U);
  options_.progress_affinity = "none";
  options_.staging_node = "none";
  EXPECT_TRUE(Decide()->progress_cpus().empty());
  EXPECT_EQ(Decide()->staging_node(), std::nullopt);
}

TEST_F(PlacementTest, RefusesCpusAndNodesThatItCannotHave) {
  allowed_ = *CpuSet::Parse("0-7");
  options_.progress_affinity = "7-8";
  ExpectRefusal("progress_affinity is 7-8, but ferryd may use the CPUs 0-7 only");
  options_.progress_affinity = "x";
  ExpectRefusal("progress_affinity: \"x\" is no list of CPUs");
  options_.progress_affinity = "auto";
  options_.staging_node = "2";
  ExpectRefusal("staging_node is 2, but ferryd has the NUMA nodes 0, 1 only");
}

TEST_F(PlacementTest, SaysOnceThatMemoryCannotBePlaced) {
  std::ostringstream log;
  const auto before = spdlog::default_logger();
  spdlog::set_default_logger(std::make_shared<spdlog::logger>(
      "test", std::make_shared<spdlog::sinks::ostream_sink_mt>(log)));
  machine_.nodes[1].number = 1000;  // no kernel has so many
  options_.staging_node = "1000";
  const auto placement = Decide();
  std::byte memory{};
  placement->SettleMemory(&memory, 1);
  placement->SettleMemory(&memory, 1);
  spdlog::set_default_logger(before);
  const std::string text = log.str();
  EXPECT_THAT(text, HasSubstr("binding memory to NUMA node 1000"));
  EXPECT_EQ(text.find("said once"), text.rfind("said once"));
}

TEST_F(PlacementTest, SettlesTheStagingMemoryOfEachJobBeforeItIsUsed) {
  TestRegistrar registrar;
  uint64_t settled_bytes = 0;
  const auto settle = [&](std::byte* base, uint64_t bytes) {
    EXPECT_EQ(reinterpret_cast<uintptr_t>(base) % 4096, 0U);
    unsigned char resident = 1;
    EXPECT_EQ(mincore(base, 4096, &resident), 0);
    EXPECT_EQ(resident & 1, 0);
    settled_bytes += bytes;
  };
  const auto pool = progress::StagingPool::Create(*registrar, {4096, 2}, settle);
  ASSERT_TRUE(pool.ok());
  EXPECT_EQ(settled_bytes, (*pool)->size_bytes());
}

}  // namespace
}  // namespace ferry::daemon
