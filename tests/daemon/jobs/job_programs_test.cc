// Programs that follow each other in the slots of a launch: in order, with deaths, aborts and ends,
// and within the limits of a job.
#include "daemon/jobs/job_programs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

#include "common/hex_text.h"
#include "daemon/jobs/launchers.h"
#include "tests/daemon/jobs/programs_world.h"

namespace ferry::daemon {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// ---- In order ----

TEST(JobProgramsTest, TheRanksOfASlotMeetAgainAndAgain) {
  ProgramsWorld world({0, 0, 1});
  world.Launch();
  for (const std::string id : {"x", "x#2", "x#3", "x#4"}) {
    for (uint32_t rank = 0; rank < 3; ++rank) {
      ASSERT_TRUE(world.Attach(rank).ok()) << id;
      EXPECT_EQ(world.JobOf(rank), id);
    }
    world.Settle();
    for (uint32_t rank = 0; rank < 3; ++rank) {
      ASSERT_TRUE(world.JoinOf(rank).ok()) << id << ": " << world.JoinOf(rank).message();
    }
    for (uint32_t rank = 0; rank < 3; ++rank) {
      world.Leave(rank);
    }
    world.Settle();
    for (uint32_t node = 0; node < 2; ++node) {
      EXPECT_THAT(world.JobsAt(node), IsEmpty()) << id;
      EXPECT_EQ(world.nodes[node]->plane.Count("RemoveJob " + id), 1U);
      EXPECT_EQ(world.nodes[node]->wires.acquired, 1) << "by the launch";
    }
  }
  EXPECT_EQ(world.At(0).programs().series().size(), 1U) << "until the launcher destroys it";
  EXPECT_TRUE(world.At(0).DestroyJob("x").ok());
  EXPECT_THAT(world.At(0).programs().series(), IsEmpty());
  ExpectRefused(world.Attach(0), ErrorCode::kNotFound, "there is no job x on this daemon");
}

TEST(JobProgramsTest, TheKeysOfTwoProgramsDiffer) {
  ProgramsWorld world({0});
  world.Launch();
  const auto first = world.nodes[0]->plane.plan();
  ASSERT_TRUE(world.Attach(0).ok());
  world.Leave(0);
  world.Settle();
  ASSERT_TRUE(world.Attach(0).ok());
  const auto second = world.nodes[0]->plane.plan();
  EXPECT_EQ(second.job_id, "x#2");
  EXPECT_NE(first.key, second.key);
}

// One rank is far ahead of the others; what is known of those is said.
TEST(JobProgramsTest, ARankWaitsInItsNextProgramForThoseStillInTheLastOne) {
  ProgramsWorld world({0, 0, 1});
  world.Launch();
  for (uint32_t rank = 0; rank < 3; ++rank) {
    ASSERT_TRUE(world.Attach(rank).ok());
  }
  world.Settle();
  world.Leave(0);
  ASSERT_TRUE(world.Attach(0).ok());
  EXPECT_EQ(world.JobOf(0), "x#2");
  world.Settle();
  EXPECT_THAT(world.JobsAt(0), ElementsAre("x", "x#2"));
  EXPECT_THAT(world.JobsAt(1), ElementsAre("x", "x#2")) << "its news came";
  EXPECT_EQ(world.JoinOf(0).code(), ErrorCode::kWouldBlock);
  const JobRecord& second = *world.At(0).jobs().at("x#2");
  EXPECT_EQ(second.MissingRanks(),
            "rank 1 (still in job x, the program before), rank 2 (still in job x, the program "
            "before)");
  world.Leave(1);
  EXPECT_THAT(second.MissingRanks(),
              HasSubstr("rank 1 (not attached: not started yet, or not at that call)"));
  world.Leave(2);
  ASSERT_TRUE(world.Attach(2).ok());
  ASSERT_TRUE(world.Attach(1).ok());
  world.Settle();
  for (uint32_t rank = 0; rank < 3; ++rank) {
    EXPECT_TRUE(world.JoinOf(rank).ok());
  }
  EXPECT_THAT(world.JobsAt(0), ElementsAre("x#2"));
  EXPECT_THAT(world.JobsAt(1), ElementsAre("x#2"));
}

TEST(JobProgramsTest, AProgramThatARankStartsIsRefused) {
  ProgramsWorld world({0, 0});
  world.Launch();
  ASSERT_TRUE(world.Attach(0).ok());
  ExpectRefused(world.Attach(0), ErrorCode::kAlreadyExists,
                "rank 0 of job x is attached already, by pid " + std::to_string(getpid()));
  ASSERT_TRUE(world.Attach(1).ok());
  world.Leave(0);
  ASSERT_TRUE(world.Attach(0).ok());
  ExpectRefused(world.Attach(0), ErrorCode::kAlreadyExists,
                "rank 0 of job x#2 is attached already, by pid " + std::to_string(getpid()));
}

// The next program of the slot may be faster than the hang-up of the one that died.
TEST(JobProgramsTest, AProgramBehindOneThatHasDiedUnseenIsToldOfTheDeath) {
  ProgramsWorld world({0, 0});
  world.Launch();
  const pid_t child = fork();
  if (child == 0) {
    _exit(0);
  }
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  ASSERT_TRUE(world.Attach(0, child).ok());
  ASSERT_TRUE(world.Attach(1).ok());
  ExpectRefused(
      world.Attach(0), ErrorCode::kPeerDied,
      "job x takes no further program: rank 0 of job x (pid " + std::to_string(child) + ") died");
}

TEST(JobProgramsTest, WithoutASeriesARankAttachesOnce) {
  ProgramsWorld world({0, 0});
  JobSpec spec = world.SpecFor(0);
  spec.programs_follow = false;
  ASSERT_TRUE(world.At(0).CreateJob(spec).ok());
  ASSERT_TRUE(world.Attach(0).ok());
  ASSERT_TRUE(world.Attach(1).ok());
  world.Leave(0);
  ExpectRefused(world.Attach(0), ErrorCode::kAlreadyExists,
                "rank 0 of job x has ended; a rank attaches only once");
}

// ---- Deaths, aborts, ends ----

TEST(JobProgramsTest, ADeathEndsTheSeriesOnAllNodes) {
  ProgramsWorld world({0, 1});
  world.Launch();
  ASSERT_TRUE(world.Attach(0).ok());
  ASSERT_TRUE(world.Attach(1).ok());
  world.Settle();
  world.Die(1);
  world.Settle();
  world.Leave(0);
  world.Settle();
  for (const uint32_t rank : {0U, 1U}) {
    ExpectRefused(world.Attach(rank), ErrorCode::kPeerDied,
                  "job x takes no further program: rank 1 of job x (pid 9) died");
  }
}

// It dies between the last barrier and its leave: another rank waits in the next program already.
TEST(JobProgramsTest, ADeathInTheLastProgramFailsTheNextOne) {
  ProgramsWorld world({0, 1});
  world.Launch();
  ASSERT_TRUE(world.Attach(0).ok());
  ASSERT_TRUE(world.Attach(1).ok());
  world.Settle();
  world.Leave(0);
  ASSERT_TRUE(world.Attach(0).ok());
  world.Settle();
  world.Die(1);
  world.Settle();
  ExpectRefused(world.JoinOf(0), ErrorCode::kPeerDied, "rank 1 of job x (pid 9) died");
}

TEST(JobProgramsTest, ADeathWhileTheSecondProgramGathersIsNamed) {
  ProgramsWorld world({0, 0, 1});
  world.Launch();
  for (uint32_t rank = 0; rank < 3; ++rank) {
    ASSERT_TRUE(world.Attach(rank).ok());
  }
  world.Settle();
  for (uint32_t rank = 0; rank < 3; ++rank) {
    world.Leave(rank);
  }
  ASSERT_TRUE(world.Attach(0).ok());
  ASSERT_TRUE(world.Attach(2).ok());
  world.Settle();
  world.Die(2);
  world.Settle();
  ExpectRefused(world.JoinOf(0), ErrorCode::kPeerDied, "rank 2 of job x#2 (pid 9) died");
  ASSERT_TRUE(world.Attach(1).ok());
  ExpectRefused(world.JoinOf(1), ErrorCode::kPeerDied, "rank 2 of job x#2 (pid 9) died");
}

TEST(JobProgramsTest, NoProgramFollowsAnAbort) {
  ProgramsWorld world({0, 1});
  world.Launch();
  ASSERT_TRUE(world.Attach(0).ok());
  ASSERT_TRUE(world.Attach(1).ok());
  world.Settle();
  world.At(0).Abort(*world.processes[0]->session, 3, "enough");
  world.Settle();
  world.Leave(1);
  world.Settle();
  ExpectRefused(world.Attach(1), ErrorCode::kAborted,
                "job x takes no further program: rank 0 of job x aborted it with exit code 3");
}

// In each order of the end, the news and the others' join.
TEST(JobProgramsTest, ThoseWhoWaitForASlotThatIsOverAreToldHowItEnded) {
  const std::string how = "exited with code 0 without another MPI_Init";
  for (int order = 0; order < 3; ++order) {
    ProgramsWorld world({0, 0, 1});
    world.Launch();
    for (uint32_t rank = 0; rank < 3; ++rank) {
      ASSERT_TRUE(world.Attach(rank).ok());
    }
    world.Settle();
    for (uint32_t rank = 0; rank < 3; ++rank) {
      world.Leave(rank);
    }
    world.Settle();
    const auto end = [&] {
      const StatusOr<bool> absent = world.At(1).RankProcessEnded("x#2", 2, how);
      ASSERT_TRUE(absent.ok());
      EXPECT_TRUE(*absent) << order;
    };
    if (order == 0) {  // before anything of the second program is known there
      end();
    }
    ASSERT_TRUE(world.Attach(0).ok());
    if (order == 1) {  // the news of it is under way
      end();
    }
    world.Settle();
    if (order == 2) {
      EXPECT_EQ(world.JoinOf(0).code(), ErrorCode::kWouldBlock);
      end();
      world.Settle();
    }
    ExpectRefused(world.JoinOf(0), ErrorCode::kPeerDied, "rank 2 of job x#2 " + how);
    ASSERT_TRUE(world.Attach(1).ok());
    ExpectRefused(world.JoinOf(1), ErrorCode::kPeerDied, "rank 2 of job x#2 " + how);
    EXPECT_FALSE(world.Attach(2).ok()) << "a process that the slot has left behind";
  }
}

TEST(JobProgramsTest, ASlotThatEndsAfterTheProgramThatOthersWaitInIsNoLoss) {
  ProgramsWorld world({0, 0});
  world.Launch();
  ASSERT_TRUE(world.Attach(1).ok());
  const StatusOr<bool> first = world.At(0).RankProcessEnded("x", 1, "exited");
  ASSERT_TRUE(first.ok());
  EXPECT_FALSE(*first) << "its connection tells how it ends";
  ASSERT_TRUE(world.Attach(0).ok());
  world.Leave(0);
  world.Leave(1);
  world.Settle();
  EXPECT_FALSE(*world.At(0).RankProcessEnded("x", 1, "exited"));
  EXPECT_TRUE(*world.At(0).RankProcessEnded("x#2", 0, "exited"));
  EXPECT_EQ(world.At(0).RankProcessEnded("x", 5, "exited").status().code(), ErrorCode::kNotFound);
}

TEST(JobProgramsTest, NoProgramFollowsTheEndOfANode) {
  ProgramsWorld world({0, 1});
  world.Launch();
  ASSERT_TRUE(world.Attach(0).ok());
  ASSERT_TRUE(world.Attach(1).ok());
  world.Settle();
  world.Leave(0);
  world.Leave(1);
  world.Settle();
  world.At(0).nodes().OnNodeDown(ProgramsWorld::AddressOf(1), 2,
                                 {ErrorCode::kNodeUnreachable, "it died"});
  ExpectRefused(world.Attach(0), ErrorCode::kNodeUnreachable,
                "job x takes no further program: the node at node1:1: it died");
  const int acquired = world.nodes[0]->wires.acquired;
  ASSERT_TRUE(world.At(0).DestroyJob("x").ok());
  EXPECT_EQ(world.nodes[0]->wires.acquired, acquired) << "the link went with the node";
}

// ---- Limits ----

TEST(JobProgramsTest, AllProgramsTogetherTakeTheQuotaOfOneJob) {
  RegistryLimits limits;
  limits.quotas = {.sessions = 2, .jobs = 1, .ranks = 2};
  limits.max_local_ranks = 2;
  ProgramsWorld world({0, 0}, limits);
  world.Launch();
  for (int program = 0; program < 50; ++program) {
    for (const uint32_t rank : {0U, 1U}) {
      const Status status = world.Attach(rank);
      ASSERT_TRUE(status.ok()) << program << ": " << status.message();
    }
    world.Settle();
    ASSERT_TRUE(world.JoinOf(0).ok());
    world.Leave(0);
    world.Leave(1);
  }
  world.Settle();
  ExpectRefused(world.At(0).CreateJob(world.SpecFor(0, "y")), ErrorCode::kLimitExceeded,
                "quota_jobs");
  ASSERT_TRUE(world.At(0).DestroyJob("x").ok());
  EXPECT_TRUE(world.At(0).CreateJob(world.SpecFor(0, "y")).ok());
}

TEST(JobProgramsTest, AnIdCannotBeThatOfAnothersProgram) {
  ProgramsWorld world({0});
  ExpectRefused(world.At(0).CreateJob(world.SpecFor(0, "x#2")), ErrorCode::kInvalidArgument,
                "characters without spaces or #");
  ExpectRefused(world.At(0).CreateJob(world.SpecFor(0, std::string(60, 'x'))),
                ErrorCode::kInvalidArgument, "at most 52 bytes");
  JobSpec spec = world.SpecFor(0);
  spec.launcher = 0;
  ExpectRefused(world.At(0).CreateJob(spec), ErrorCode::kInvalidArgument,
                "only while a launcher waits");
  world.Launch();
  ExpectRefused(world.At(0).CreateJob(world.SpecFor(0)), ErrorCode::kAlreadyExists, "job x exists");
  ASSERT_TRUE(world.Attach(0).ok());
  world.Leave(0);
  world.Settle();
  ExpectRefused(world.At(0).CreateJob(world.SpecFor(0)), ErrorCode::kAlreadyExists, "job x exists");
}

TEST(JobProgramsTest, WhatIsDestroyedEndsInAllItsPrograms) {
  ProgramsWorld world({0, 0});
  world.Launch();
  ASSERT_TRUE(world.Attach(0).ok());
  ASSERT_TRUE(world.Attach(1).ok());
  world.Leave(0);
  ASSERT_TRUE(world.Attach(0).ok());
  ASSERT_TRUE(world.At(0).DestroyJob("x#2").ok());
  world.Settle();
  ExpectRefused(world.JoinOf(0), ErrorCode::kAborted, "job x#2 was destroyed by its launcher");
  EXPECT_THAT(world.JobsAt(0), IsEmpty());
  EXPECT_THAT(world.At(0).programs().series(), IsEmpty());
  EXPECT_EQ(world.At(0).local_ranks(), 0U);
}

// Its last job has ended, but is still there.
TEST(JobProgramsTest, NoProgramFollowsInADestroyedSeries) {
  ProgramsWorld world({0});
  world.Launch();
  ASSERT_TRUE(world.Attach(0).ok());
  world.Leave(0);
  ASSERT_TRUE(world.At(0).DestroyJob("x").ok());
  ASSERT_THAT(world.JobsAt(0), ElementsAre("x"));
  ExpectRefused(world.Attach(0), ErrorCode::kAborted,
                "job x takes no further program: job x was destroyed by its launcher");
  world.Settle();
  ExpectRefused(world.Attach(0), ErrorCode::kNotFound, "there is no job x");
}

TEST(JobProgramsTest, ALauncherThatHangsUpTakesItsSeriesWithIt) {
  ProgramsWorld world({0});
  Launchers launchers(world.At(0));
  const Launchers::Token token = launchers.Admit(geteuid());
  const std::string text = HexText(token);
  ASSERT_TRUE(launchers.CreateJob(text, world.SpecFor(0)).ok());
  ASSERT_TRUE(world.Attach(0).ok());
  world.Leave(0);
  world.Settle();
  EXPECT_THAT(world.JobsAt(0), IsEmpty());
  EXPECT_TRUE(*launchers.RankProcessEnded(text, "x#2", 0, "exited")) << "it is known still";
  launchers.Dismiss(text);
  EXPECT_THAT(world.At(0).programs().series(), IsEmpty());
}

}  // namespace
}  // namespace ferry::daemon
