#include "common/nearest.h"

#include <gtest/gtest.h>

namespace ferry {
namespace {

constexpr std::string_view kNames[] = {"-n", "-np", "status", "shutdown", "--tag-output"};

TEST(NearestTest, FindsWhatWasMistyped) {
  EXPECT_EQ(NearestName("statsu", kNames), "status");
  EXPECT_EQ(NearestName("shutdwon", kNames), "shutdown");
  EXPECT_EQ(NearestName("--tag-ouput", kNames), "--tag-output");
  EXPECT_EQ(NearestName("--tag_output", kNames), "--tag-output");
  EXPECT_EQ(NearestName("status", kNames), "status");
}

TEST(NearestTest, GuessesNothingThatIsFar) {
  EXPECT_EQ(NearestName("--frobnicate", kNames), "");
  EXPECT_EQ(NearestName("", kNames), "");
  EXPECT_EQ(NearestName("zz", kNames), "");  // as near to -n, of which nothing would be left
  EXPECT_EQ(NearestName("status", {}), "");
}

TEST(NearestTest, SaysItAtTheEndOfASentence) {
  EXPECT_EQ(DidYouMean("statsu", kNames), "; did you mean status?");
  EXPECT_EQ(DidYouMean("--frobnicate", kNames), "");
}

}  // namespace
}  // namespace ferry
