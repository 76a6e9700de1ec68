// The notices of a rank's life to ferryrun, and those of long waits at its ends to the user.
#include "client/bootstrap/job_life.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "client/bootstrap/meeting_watch.h"
#include "common/clock.h"

namespace ferry::client {
namespace {

using Kind = RankNotice::Kind;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

// There is one life for the process, so a test leaves it as it was.
class JobLifeTest : public testing::Test {
 protected:
  JobLifeTest() {
    EXPECT_EQ(pipe(ends_), 0);
    life_.SetPipe(static_cast<uint64_t>(ends_[1]), 7);
  }
  // The notices so far. No thread writes any more.
  std::vector<RankNotice> Notices() {
    close(ends_[1]);
    std::vector<RankNotice> notices;
    RankNotice notice{};
    while (read(ends_[0], &notice, sizeof(notice)) == sizeof(notice)) {
      notices.push_back(notice);
    }
    return notices;
  }
  static std::vector<Kind> KindsOf(const std::vector<RankNotice>& notices) {
    std::vector<Kind> kinds;
    for (const RankNotice& notice : notices) {
      EXPECT_EQ(notice.rank, 7U);
      kinds.push_back(notice.kind);
    }
    return kinds;
  }

  JobLife& life_ = JobLife::Instance();
  int ends_[2] = {-1, -1};
};

TEST_F(JobLifeTest, IsToldOnceEachWay) {
  life_.SetCalls("MPI_Init", "MPI_Finalize");
  life_.Enter();
  life_.Enter();
  life_.Meet(3);
  life_.HearOfEnd(ErrorCode::kNotFound);  // a rank that has left in good order
  life_.HearOfEnd(ErrorCode::kPeerDied);
  life_.HearOfEnd(ErrorCode::kAborted);
  life_.EndJob(42, false);
  life_.EndJob(0, true);
  if (fork() == 0) {
    life_.EndJob(1, false);  // no rank
    _exit(0);
  }
  wait(nullptr);
  life_.Leave();
  life_.Leave();
  const std::vector<RankNotice> notices = Notices();
  ASSERT_THAT(KindsOf(notices), ElementsAre(Kind::kEnters, Kind::kMeets, Kind::kHeardOfEnd,
                                            Kind::kAborts, Kind::kExits, Kind::kLeaves));
  EXPECT_STREQ(notices[0].entry, "MPI_Init");
  EXPECT_STREQ(notices[0].exit, "MPI_Finalize");
  EXPECT_EQ(notices[1].program, 3U);
  EXPECT_EQ(notices[1].process, static_cast<uint32_t>(getpid()));
  EXPECT_EQ(notices[2].cause, static_cast<int32_t>(ErrorCode::kPeerDied));
  EXPECT_EQ(notices[3].exit_code, 42);
}

TEST_F(JobLifeTest, NobodyIsToldWhereNobodyReads) {
  close(ends_[0]);
  life_.Enter();  // no SIGPIPE
  life_.Leave();
  close(ends_[1]);
  life_.Enter();  // nor where the descriptor is gone
  life_.Leave();
}

TEST(MeetingWatchTest, TellsAfterATimeAndThenLater) {
  MeetingWatch watch("MPI_Init", 3, 1);
  while (!watch.IsDue()) {
  }
  const uint64_t first_ns = watch.due_ns();
  testing::internal::CaptureStderr();
  watch.Tell(" for rank 5");
  const uint64_t second_ns = watch.due_ns();
  watch.TellAnswer([]() -> StatusOr<std::string> { return std::string(": for good"); });
  watch.TellAnswer([]() -> StatusOr<std::string> {  // after the other one
    return Status(ErrorCode::kTimeout, "no answer");
  });
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_THAT(said, StartsWith("libferry: rank 3: MPI_Init has waited for 0."));
  EXPECT_THAT(said, HasSubstr(" s for rank 5\n"));
  EXPECT_THAT(said, HasSubstr(" s: for good\n"));
  EXPECT_THAT(said, testing::Not(HasSubstr("no answer")));
  EXPECT_GT(second_ns - first_ns, 2'000'000U - 1);
}

TEST(MeetingWatchTest, KeepsSilentIfAskedTo) {
  const MeetingWatch watch("MPI_Init", 3, 0);
  EXPECT_FALSE(watch.IsDue());
  EXPECT_EQ(watch.due_ns(), UINT64_MAX);
}

}  // namespace
}  // namespace ferry::client
