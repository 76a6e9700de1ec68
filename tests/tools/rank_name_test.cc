#include "tools/ferryctl/rank_name.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ferry::tools {
namespace {

TEST(RankNameTest, SplitsAtTheLastDot) {
  const StatusOr<RankName> name = ParseRankName("slurm.12.7");
  ASSERT_TRUE(name.ok());
  EXPECT_EQ(name->job_id, "slurm.12");
  EXPECT_EQ(name->rank, 7u);
}

TEST(RankNameTest, RejectsWhatIsNoRank) {
  for (const char* text :
       {"", "job", "job.", ".3", "job.x", "job.-1", "job.3x", "job.9999999999"}) {
    const StatusOr<RankName> name = ParseRankName(text);
    ASSERT_FALSE(name.ok()) << text;
    EXPECT_EQ(name.status().code(), ErrorCode::kInvalidArgument);
    EXPECT_THAT(name.status().message(), testing::HasSubstr("write JOB.RANK"));
  }
}

}  // namespace
}  // namespace ferry::tools
