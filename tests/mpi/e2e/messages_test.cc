// Messages of MPI programs, by the real library and daemon: all modes, forms and sizes, threads,
// and every mistake a program can make with them.
#include <thread>

#include "tests/mpi/e2e/mpi_job.h"

namespace ferry::mpi_tests {
namespace {

class MessagesTest : public testing::TestWithParam<Placement> {};

TEST_P(MessagesTest, AreRightInAllModesFormsAndSizes) {
  ExpectJob(GetParam(), {"tests/mpi/ranks/messages"}, "all messages were right");
}

TEST_P(MessagesTest, AreRightWithThreadMultiple) {
  ExpectJob(GetParam(), {"tests/mpi/ranks/messages", "multiple"}, "all messages were right");
}

TEST_P(MessagesTest, OfWindowsEndInEveryWay) {
  ExpectJob(GetParam(), {"tests/mpi/ranks/windows"}, "all windows were right");
}

TEST_P(MessagesTest, OfWindowsEndInEveryWayWithThreadMultiple) {
  ExpectJob(GetParam(), {"tests/mpi/ranks/windows", "multiple"}, "all windows were right");
}

TEST_P(MessagesTest, OfManyThreadsDoNotMeet) {
  ExpectJob(GetParam(), {"tests/mpi/ranks/threads"}, "all threads were served");
}

TEST_P(MessagesTest, AndGeneralisedRequestsAreFreedInEitherOrder) {
  ExpectJob(GetParam(), {"tests/mpi/ranks/generalized"}, "generalised requests are well");
}

// Between nodes ferryd, on a core of its own, has a part in it.
TEST(LooksTest, LeaveTheCoreToOtherRanks) {
  ExpectJob({"OneNode", {"-n", "2", "--bind-to", "none"}}, {"tests/mpi/ranks/looks"},
            "loops of looks leave the core to others");
}

// Any access to the emulated devices' memory without a stream is a fault.
std::vector<std::string> BehindALink(const std::vector<std::string>& more = {}) {
  std::vector<std::string> variables = {"FERRY_HOST_LINK_H2D_MB_PER_S=8000",
                                        "FERRY_HOST_LINK_D2H_MB_PER_S=8000",
                                        "FERRY_HOST_LINK_LATENCY_US=5", "FERRY_HOST_LINK_GUARD=1"};
  variables.insert(variables.end(), more.begin(), more.end());
  return variables;
}

TEST_P(MessagesTest, AndCollectivesTakeDeviceBuffers) {
  ExpectJob(GetParam(), {"tests/mpi/ranks/device"}, "device buffers were right", BehindALink());
}

TEST_P(MessagesTest, OfDevicesAreReducedWhereItIsSoonerDone) {
  ExpectJob(GetParam(), {"tests/mpi/ranks/device_reductions"}, "device reductions were right",
            BehindALink());
}

TEST_P(MessagesTest, OfDevicesAreReducedThere) {
  ExpectJob(GetParam(), {"tests/mpi/ranks/device_reductions"}, "device reductions were right",
            BehindALink({"FERRY_DEVICE_REDUCTION_MIN_BYTES=0"}));
}

// The scratch memory of reductions then lies in host memory that the device reaches.
TEST_P(MessagesTest, OfDevicesAreReducedThereWithoutRoomForMore) {
  ExpectJob(
      GetParam(), {"tests/mpi/ranks/device_reductions"}, "device reductions were right",
      BehindALink({"FERRY_DEVICE_REDUCTION_MIN_BYTES=0", "FERRY_HOST_GPU_MEMORY_BYTES=1310720"}));
}

INSTANTIATE_TEST_SUITE_P(Placements, MessagesTest, testing::ValuesIn(PlacementsOfPairs()), NameOf);

// Messages by direct links, all the time, and by paths that change now and then: of four ranks in a
// ring, two pairs live on different nodes.
class MessagesByLinksTest : public testing::TestWithParam<std::vector<std::string>> {
 protected:
  static void Expect(const std::vector<std::string>& program, const std::string& line) {
    ExpectJob({"", {"-n", "4", "--nodes", "2"}}, program, line, GetParam());
  }
};

TEST_P(MessagesByLinksTest, AreRightInAllModesFormsAndSizes) {
  Expect({"tests/mpi/ranks/messages"}, "all messages were right");
}

TEST_P(MessagesByLinksTest, AreRightWithThreadMultiple) {
  Expect({"tests/mpi/ranks/messages", "multiple"}, "all messages were right");
}

TEST_P(MessagesByLinksTest, OfWindowsEndInEveryWay) {
  Expect({"tests/mpi/ranks/windows", "multiple"}, "all windows were right");
}

TEST_P(MessagesByLinksTest, OfManyThreadsDoNotMeet) {
  Expect({"tests/mpi/ranks/threads"}, "all threads were served");
}

INSTANTIATE_TEST_SUITE_P(, MessagesByLinksTest,
                         testing::Values(std::vector<std::string>{"FERRY_DIRECT_LINKS=always"},
                                         std::vector<std::string>{"FERRY_DIRECT_LINKS=auto",
                                                                  "FERRY_DIRECT_LINK_MESSAGES=3",
                                                                  "FERRY_DIRECT_LINK_IDLE_MS=5"}),
                         [](const auto& info) {
                           return std::string(info.index == 0 ? "Kept" : "Restless");
                         });

// Small receives go another way where ranks share cores.
TEST(CrowdedNodeTest, ItsWindowsEndInEveryWay) {
  const unsigned cores = std::thread::hardware_concurrency();
  if (cores > 16) {
    GTEST_SKIP() << "it takes more ranks than cores, and here are " << cores << " cores";
  }
  ExpectJob({"Crowded", {"-n", std::to_string(cores + 1)}}, {"tests/mpi/ranks/windows"},
            "all windows were right");
}

class MistakesTest : public testing::TestWithParam<Placement> {};

TEST_P(MistakesTest, AreNamedAndHarmNothing) {
  ExpectJob(GetParam(), {"tests/mpi/ranks/mistakes"}, "all mistakes were named");
}

// By a schedule, since a board has no messages; with eager messages and with an RTS. The sender of
// an RTS in the node waits until the receive takes it.
TEST_P(MistakesTest, OfACollectivesReceiveLeaveNoMessageBehind) {
  for (const char* eager_bytes : {"8192", "0"}) {
    SCOPED_TRACE(eager_bytes);
    ExpectJob(GetParam(), {"tests/mpi/ranks/refused_receives"}, "refused receives did no harm",
              BehindALink({"FERRY_COLLECTIVE_ALGORITHMS=bcast=linear",
                           std::string("FERRY_EAGER_MAX_BYTES=") + eager_bytes}));
  }
}

INSTANTIATE_TEST_SUITE_P(Placements, MistakesTest, testing::ValuesIn(Pairs()), NameOf);

}  // namespace
}  // namespace ferry::mpi_tests
