#include "tools/doctor/topology_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/topology/discover.h"

namespace ferry::tools {
namespace {

using testing::HasSubstr;

class TopologyCheckTest : public testing::Test {
 protected:
  const StatusOr<topology::Machine> machine_ =
      topology::ReadMachine("tests/common/topology/machines/two_sockets.xml");
};

TEST_F(TopologyCheckTest, SaysWhatIsNearWhat) {
  const Finding finding = CheckTopology(machine_, {});
  EXPECT_EQ(finding.verdict, Verdict::kOk);
  EXPECT_EQ(finding.mend, "");
  EXPECT_EQ(finding.found,
            "2 NUMA nodes, 0: CPUs 0-7, 1: CPUs 8-15; NIC eth0 at node 0; NIC eth1 at node 0; NIC "
            "ib0 at node 0; NIC ib1 at node 1; GPU 0000:1a:00.0 at node 0, 10 from NIC eth0; GPU "
            "0000:3d:00.0 at node 0, 5 from NIC ib0; GPU 0000:b3:00.0 at node 1, 5 from NIC ib1; "
            "GPU 0000:d8:00.0 at node 1, 10 from NIC ib1");
}

TEST_F(TopologyCheckTest, WarnsOfAProgressThreadFarFromItsNic) {
  const Finding far = CheckTopology(machine_, {{"ib1", "8-15", "0-3"}});
  EXPECT_EQ(far.verdict, Verdict::kWarning);
  EXPECT_THAT(far.found, HasSubstr("runs on CPUs 0-3, far from its NIC ib1 (CPUs 8-15)"));
  EXPECT_THAT(far.mend, HasSubstr("progress_affinity = \"auto\""));
  for (const NicPlace& nic :
       {NicPlace{"ib1", "8-15", "7-8"}, NicPlace{"ib1", "8-15", ""}, NicPlace{"lo", "", "0-3"}}) {
    EXPECT_EQ(CheckTopology(machine_, {nic}).verdict, Verdict::kOk) << nic.progress_cpus;
  }
}

TEST_F(TopologyCheckTest, SaysWhyThereIsNoTopology) {
  const Finding finding = CheckTopology(Status(ErrorCode::kSystem, "hwloc cannot read it"), {});
  EXPECT_EQ(finding.verdict, Verdict::kWarning);
  EXPECT_THAT(finding.found, HasSubstr("hwloc cannot read it"));
  EXPECT_THAT(finding.mend, HasSubstr("lstopo"));
}

}  // namespace
}  // namespace ferry::tools
