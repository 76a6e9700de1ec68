#include "tools/ferryctl/table.h"

#include <gtest/gtest.h>

namespace ferry::tools {
namespace {

TEST(TableTest, AlignsColumns) {
  Table table({{"NAME"}, {"SIZE", Align::kRight}, {"NOTE"}});
  table.AddRow({"a", "5", "first"});
  table.AddRow({"longer", "12345", ""});
  EXPECT_EQ(table.Text(),
            "NAME     SIZE  NOTE\n"
            "a           5  first\n"
            "longer  12345  -\n");
}

TEST(TableTest, CountsCharactersNotBytes) {
  Table table({{"N"}, {"M"}});
  table.AddRow({"é", "1"});
  table.AddRow({"ab", "2"});
  EXPECT_EQ(table.Text(), "N   M\né   1\nab  2\n");
}

TEST(TableTest, HasOnlyItsHeaderWhenEmpty) {
  const Table table({{"A"}, {"B"}});
  EXPECT_TRUE(table.empty());
  EXPECT_EQ(table.Text(), "A  B\n");
}

TEST(TableTest, ShowsBytesInTheLargestFittingUnit) {
  EXPECT_EQ(BytesText(0), "0 B");
  EXPECT_EQ(BytesText(999), "999 B");
  EXPECT_EQ(BytesText(1000), "1.0 KiB");
  EXPECT_EQ(BytesText(1024), "1 KiB");
  EXPECT_EQ(BytesText(1536), "1.5 KiB");
  EXPECT_EQ(BytesText(64 << 20), "64 MiB");
  EXPECT_EQ(BytesText((100 << 20) + 1), "100 MiB");
  EXPECT_EQ(BytesText(UINT64_MAX), "16 EiB");
}

TEST(TableTest, ShowsDurationsInTwoUnits) {
  EXPECT_EQ(DurationText(0), "0 ms");
  EXPECT_EQ(DurationText(999), "999 ms");
  EXPECT_EQ(DurationText(59'999), "59 s");
  EXPECT_EQ(DurationText(185'000), "3 min 5 s");
  EXPECT_EQ(DurationText(7'440'000), "2 h 4 min");
  EXPECT_EQ(DurationText(442'800'000), "5 d 3 h");
}

}  // namespace
}  // namespace ferry::tools
