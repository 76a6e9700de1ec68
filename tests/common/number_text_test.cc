#include "common/number_text.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

namespace ferry {
namespace {

TEST(NumberTextTest, ReadsWholeNumbersOfTheirKind) {
  EXPECT_EQ(NumberIn<uint32_t>("0"), 0U);
  EXPECT_EQ(NumberIn<uint32_t>("4294967295"), 4294967295U);
  EXPECT_EQ(NumberIn<int>("-12"), -12);
  EXPECT_EQ(NumberIn<uint64_t>("fF", 16), 255U);
  EXPECT_EQ(NumberIn<uint16_t>(std::string("123456").substr(1, 3)), 234);
}

TEST(NumberTextTest, OtherTextIsNone) {
  for (const char* text : {"", " 1", "1 ", "+1", "1.0", "0x1", "one", "-1", "4294967296", "1,2"}) {
    EXPECT_EQ(NumberIn<uint32_t>(text), std::nullopt) << text;
  }
  EXPECT_EQ(NumberIn<uint32_t>({"1\0", 2}), std::nullopt);
  EXPECT_EQ(NumberIn<uint32_t>({}), std::nullopt);
  EXPECT_EQ(NumberIn<uint8_t>("256"), std::nullopt);
  EXPECT_EQ(NumberIn<uint8_t>("g0", 16), std::nullopt);
}

}  // namespace
}  // namespace ferry
