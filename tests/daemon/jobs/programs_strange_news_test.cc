// News of other daemons about programs that follow each other, which may be lies.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "daemon/tls/secrets.h"
#include "tests/daemon/jobs/programs_world.h"

namespace ferry::daemon {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class StrangeNewsTest : public testing::Test {
 protected:
  StrangeNewsTest() : world_({0, 1}) { world_.Launch(); }
  Status Say(const std::string& job_id, const std::string& secret = kSecret) {
    control::JoinedRequest request;
    request.set_incarnation(101);
    request.set_job_id(job_id);
    request.set_job_proof(JobProof(secret, job_id, 101));
    request.set_node(1);
    request.add_ranks()->set_rank(1);
    // As the service asks before it passes the news on.
    FERRY_RETURN_IF_ERROR(world_.At(0).nodes().CheckPeer(job_id, request.job_proof(), 101));
    return world_.At(0).nodes().OnJoined(request, ProgramsWorld::AddressOf(1));
  }

  ProgramsWorld world_;
};

TEST_F(StrangeNewsTest, BeginOnlyTheNextProgram) {
  for (const std::string id : {"x#2", "x#3", "x#0", "x#1", "x#02", "x#", "x#2#2", "x#4294967297"}) {
    EXPECT_EQ(Say(id).code(), ErrorCode::kNotFound) << id;
  }
  EXPECT_THAT(world_.JobsAt(0), ElementsAre("x")) << "which is not complete yet";
  ASSERT_TRUE(world_.Attach(0).ok());
  ASSERT_TRUE(world_.Attach(1).ok());
  world_.Settle();
  ExpectRefused(Say("x#2", "a wrong secret of some bytes ..."), ErrorCode::kPermissionDenied,
                "the caller does not know the secret of job x#2");
  for (const std::string id : {"x#3", "x#02", "x#1", "x#-1", "x# 2"}) {
    EXPECT_EQ(Say(id).code(), ErrorCode::kNotFound) << id;
  }
  EXPECT_THAT(world_.JobsAt(0), ElementsAre("x"));
  EXPECT_TRUE(Say("x#2").ok());
  EXPECT_EQ(Say("x#3").code(), ErrorCode::kNotFound) << "one at a time";
  EXPECT_THAT(world_.JobsAt(0), ElementsAre("x", "x#2"));
}

TEST_F(StrangeNewsTest, ThatComeLateBeginNothing) {
  ASSERT_TRUE(world_.Attach(0).ok());
  ASSERT_TRUE(world_.Attach(1).ok());
  world_.Settle();
  world_.Leave(0);
  world_.Leave(1);
  world_.Settle();
  EXPECT_EQ(Say("x").code(), ErrorCode::kNotFound);
  EXPECT_THAT(world_.JobsAt(0), IsEmpty());
}

TEST_F(StrangeNewsTest, OfASeriesThatHasFailedAreRefused) {
  ASSERT_TRUE(world_.Attach(0).ok());
  ASSERT_TRUE(world_.Attach(1).ok());
  world_.Settle();
  world_.Die(0);
  world_.Settle();
  ExpectRefused(Say("x#2"), ErrorCode::kPeerDied,
                "job x takes no further program: rank 0 of job x");
}

}  // namespace
}  // namespace ferry::daemon
