// The words of a launcher about its ranks' processes arrive whole; others are no such text.
#include "common/rank_exits.h"

#include <gtest/gtest.h>

#include <string>

namespace ferry {
namespace {

TEST(RankExitsTest, TextsAreReadBack) {
  RankExits exits{.job = 3, .codes = {{0, 62}, {3, 1}}, .signals = {{9, 1}}};
  EXPECT_EQ(exits.Ranks(), 64U);
  EXPECT_EQ(TextOf(exits), "3;0*62,3*1;9*1");
  const std::optional<RankExits> read = ReadRankExits(TextOf(exits));
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(read->job, 3);
  EXPECT_EQ(read->codes, exits.codes);
  EXPECT_EQ(read->signals, exits.signals);

  const std::optional<RankExits> nothing = ReadRankExits(TextOf(RankExits()));
  ASSERT_TRUE(nothing.has_value());
  EXPECT_FALSE(nothing->job.has_value());
  EXPECT_EQ(nothing->Ranks(), 0U);
}

// The longest that there can be fits into the header fields of a call.
TEST(RankExitsTest, AnyTextIsShort) {
  RankExits exits{.job = 255};
  for (int code = 0; code < 256; ++code) {
    exits.codes[code] = 1 << 24;
  }
  for (int signal = 1; signal <= 64; ++signal) {
    exits.signals[signal] = 1 << 24;
  }
  EXPECT_LT(TextOf(exits).size(), 5000U);
  EXPECT_TRUE(ReadRankExits(TextOf(exits)).has_value());
}

TEST(RankExitsTest, OtherWordsAreRefused) {
  for (const std::string text :
       {"", "later", "0;0*1", "0;0*1;;", "256;;", "-1;;", ";256*1;", ";0*0;", ";0*1,0*1;", ";0*1,;",
        ";0;", ";0*1*1;", ";;0*1", ";;65*1", ";0*99999999999;", "0 ;;", ";+0*1;", ";0*1;;9*1"}) {
    EXPECT_FALSE(ReadRankExits(text).has_value()) << text;
  }
}

}  // namespace
}  // namespace ferry
