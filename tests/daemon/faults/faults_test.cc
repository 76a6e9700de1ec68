#include "daemon/faults/faults.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

namespace ferry::daemon {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

std::unique_ptr<Faults> Parse(const std::string& text) {
  StatusOr<std::unique_ptr<Faults>> faults = Faults::Parse(text);
  EXPECT_TRUE(faults.ok()) << faults.status().ToString();
  return std::move(*faults);
}

TEST(FaultsTest, HasOneRowForEachPoint) {
  std::set<std::string> names;
  uint8_t expected = 0;
  for (const FaultPointInfo& row : FaultPoints()) {
    EXPECT_EQ(static_cast<uint8_t>(row.point), expected++);
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
    EXPECT_NE(row.actions, 0U) << row.name;
    EXPECT_STREQ(FaultName(row.point), row.name);
  }
  EXPECT_EQ(expected, static_cast<uint8_t>(FaultPoint::kReceiveOneSidedDone) + 1);
}

TEST(FaultsTest, FailsAtTheNthPassingOnly) {
  const auto faults = Parse("staging.copy_in:3:SYSTEM");
  EXPECT_EQ(faults->Pass(FaultPoint::kStagingCopyIn), ErrorCode::kOk);
  EXPECT_EQ(faults->Pass(FaultPoint::kStagingCopyOut), ErrorCode::kOk);
  EXPECT_EQ(faults->Pass(FaultPoint::kStagingCopyIn), ErrorCode::kOk);
  EXPECT_FALSE(faults->IsDue(FaultPoint::kStagingCopyOut, 9));
  EXPECT_TRUE(faults->IsDue(FaultPoint::kStagingCopyIn, 1));
  EXPECT_EQ(faults->Pass(FaultPoint::kStagingCopyIn), ErrorCode::kSystem);
  EXPECT_FALSE(faults->IsDue(FaultPoint::kStagingCopyIn, 9));
  EXPECT_EQ(faults->Pass(FaultPoint::kStagingCopyIn), ErrorCode::kOk);
}

TEST(FaultsTest, TakesSeveralRules) {
  const auto faults =
      Parse("rndv_get.read:1:TIMEOUT,rndv_get.read:2:LIMIT,memory.register:1:MEMORY");
  EXPECT_EQ(faults->Pass(FaultPoint::kRndvGetRead), ErrorCode::kTimeout);
  EXPECT_EQ(faults->Pass(FaultPoint::kMemoryRegister), ErrorCode::kOutOfMemory);
  EXPECT_EQ(faults->Pass(FaultPoint::kRndvGetRead), ErrorCode::kLimitExceeded);
  const std::vector<FaultReport> reports = faults->Report();
  ASSERT_EQ(reports.size(), 3U);
  EXPECT_EQ(reports[1].point, "rndv_get.read");
  EXPECT_EQ(reports[1].at, 2U);
  EXPECT_EQ(reports[1].action, "LIMIT");
  EXPECT_EQ(reports[1].passed, 2U);
  EXPECT_EQ(reports[1].state, "done");
}

TEST(FaultsTest, StallsUntilItIsReleased) {
  const auto faults = Parse("rndv_get.read:1:stall");
  EXPECT_FALSE(faults->stalling());
  EXPECT_EQ(faults->Report()[0].state, "waits");
  EXPECT_EQ(faults->Pass(FaultPoint::kRndvGetRead), ErrorCode::kWouldBlock);
  EXPECT_TRUE(faults->stalling());
  EXPECT_TRUE(faults->IsStalling(FaultPoint::kRndvGetRead));
  EXPECT_FALSE(faults->IsStalling(FaultPoint::kSendRndvGet));
  EXPECT_EQ(faults->Report()[0].state, "stalls");
  int resumed = 0;
  faults->Hold([&] { ++resumed; });
  faults->Resume();
  EXPECT_EQ(resumed, 0);
  faults->Release();
  EXPECT_FALSE(faults->stalling());
  faults->Resume();
  faults->Resume();
  EXPECT_EQ(resumed, 1);
}

TEST(FaultsDeathTest, KillsTheProcess) {
  const auto faults = Parse("send.rndv_get:2:kill");
  EXPECT_EQ(faults->Pass(FaultPoint::kSendRndvGet), ErrorCode::kOk);
  EXPECT_EXIT(faults->Pass(FaultPoint::kSendRndvGet), testing::KilledBySignal(SIGKILL), "");
}

std::string Complaint(const std::string& text) {
  const StatusOr<std::unique_ptr<Faults>> faults = Faults::Parse(text);
  EXPECT_EQ(faults.status().code(), ErrorCode::kConfiguration) << text;
  return faults.status().message();
}

TEST(FaultsTest, SaysWhatIsWrongWithARule) {
  EXPECT_THAT(
      Complaint("rndv_get.raed:1:SYSTEM"),
      AllOf(HasSubstr("option faults: \"rndv_get.raed:1:SYSTEM\""),
            HasSubstr("no such point; there are memory.register, "), HasSubstr("receive.result")));
  EXPECT_THAT(Complaint("rndv_get.read:1:SYTSEM"),
              AllOf(HasSubstr("rndv_get.read can have kill, stall, SYSTEM, "),
                    HasSubstr("INTERNAL"), Not(HasSubstr("lose"))));
  EXPECT_THAT(Complaint("send.rndv_get:1:SYSTEM"),
              HasSubstr("send.rndv_get can have kill, stall, lose"));
  EXPECT_THAT(Complaint("receive.rndv_get:1:stall"), HasSubstr("receive.rndv_get can have kill"));
  for (const char* rule : {"rndv_get.read:0:kill", "rndv_get.read:x:kill", "rndv_get.read:-1:kill",
                           "rndv_get.read::kill", "rndv_get.read:1x:kill"}) {
    EXPECT_THAT(Complaint(rule), HasSubstr("which passing it is: 1 or more"));
  }
  for (const char* rule :
       {"rndv_get.read", "rndv_get.read:1", ":", "rndv_get.read:1:kill,", ",", " "}) {
    EXPECT_THAT(Complaint(rule), HasSubstr("POINT:N:ACTION, such as")) << rule;
  }
}

}  // namespace
}  // namespace ferry::daemon
