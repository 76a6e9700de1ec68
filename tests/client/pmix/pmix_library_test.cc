#include "client/pmix/pmix_library.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ferry::client {
namespace {

using testing::ElementsAre;

TEST(PmixLibraryTest, KnowsWhetherAServerStartedThisProcess) {
  const char* const both[] = {"PMIX_NAMESPACE=job", "PMIX_RANK=0", nullptr};
  const char* const one[] = {"PMIX_RANK=0", nullptr};
  const char* const none[] = {"PMIX_RANKING=0", nullptr};
  EXPECT_TRUE(PmixLibrary::IsAround(both));
  EXPECT_FALSE(PmixLibrary::IsAround(one));
  EXPECT_FALSE(PmixLibrary::IsAround(none));
}

TEST(RankListTest, ReadsListsInAnyOrder) {
  EXPECT_THAT(*ParseRankList("0"), ElementsAre(0));
  EXPECT_THAT(*ParseRankList("7,1,12"), ElementsAre(1, 7, 12));
}

TEST(RankListTest, RefusesWhatIsNoList) {
  for (const char* text : {"", ",", "1,", ",1", "1 2", "a", "-1", "1,,2", "99999999999"}) {
    EXPECT_EQ(ParseRankList(text).status().code(), ErrorCode::kCorrupt) << text;
  }
}

}  // namespace
}  // namespace ferry::client
