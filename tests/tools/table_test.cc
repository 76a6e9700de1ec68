#include "tools/display/table.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

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

TEST(TableTest, FitsIntoATerminalAsSeveralTables) {
  Table table({{"KEY"}, {"FIRST", Align::kRight}, {"SECOND"}, {"THIRD"}});
  table.AddRow({"a", "1", "two", "x"});
  table.AddRow({"bcd", "22", "", "a long cell"});
  EXPECT_EQ(table.FittedText({80, false}), table.Text());
  EXPECT_EQ(table.FittedText({18, false}),
            "KEY  FIRST  SECOND\n"
            "a        1  two\n"
            "bcd     22  -\n"
            "\n"
            "KEY  THIRD\n"
            "a    x\n"
            "bcd  a long cell\n");
  EXPECT_EQ(table.FittedText({18, false}, 2),
            "KEY  FIRST  SECOND\n"
            "a        1  two\n"
            "bcd     22  -\n"
            "\n"
            "KEY  FIRST  THIRD\n"
            "a        1  x\n"
            "bcd     22  a long cell\n")
      << "what is too wide by itself is not lost";
}

TEST(TableTest, ColoursTakeNoRoom) {
  Table table({{"STATE", Align::kLeft, true}, {"NAME"}});
  table.AddRow({"died", "up"});
  table.AddRow({"sleepy", "x"});
  EXPECT_EQ(table.Text({80, true}),
            "\033[1mSTATE\033[0m   \033[1mNAME\033[0m\n"
            "\033[31mdied\033[0m    up\n"
            "sleepy  x\n");
}

// ---- Terminals ----

class TerminalTest : public testing::Test {
 protected:
  TerminalTest() : master_(posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC)) {
    EXPECT_EQ(grantpt(master_), 0);
    EXPECT_EQ(unlockpt(master_), 0);
    terminal_ = open(ptsname(master_), O_RDWR | O_NOCTTY | O_CLOEXEC);
    const winsize size = {50, 132, 0, 0};
    EXPECT_EQ(ioctl(terminal_, TIOCSWINSZ, &size), 0);
  }
  ~TerminalTest() override {
    close(terminal_);
    close(master_);
  }
  int master_;
  int terminal_ = -1;
};

TEST_F(TerminalTest, HasItsWidthAndColoursUnlessSomebodyWantsNone) {
  const char* const usual[] = {"TERM=xterm", "NO_COLOR=", nullptr};
  const char* const plain[] = {"TERM=xterm", "NO_COLOR=1", nullptr};
  const char* const dumb[] = {"TERM=dumb", nullptr};
  const char* const none[] = {nullptr};
  EXPECT_EQ(TerminalOf(terminal_, usual).width, 132U);
  EXPECT_TRUE(TerminalOf(terminal_, usual).colours);
  for (const auto& environment : {plain, dumb, none}) {
    EXPECT_FALSE(TerminalOf(terminal_, environment).colours);
  }
}

TEST_F(TerminalTest, WhatIsNoneIsOfTheUsualWidthAndPlain) {
  const char* const usual[] = {"TERM=xterm", nullptr};
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  EXPECT_EQ(TerminalOf(ends[1], usual).width, 80U);
  EXPECT_FALSE(TerminalOf(ends[1], usual).colours);
  close(ends[0]);
  close(ends[1]);
}

TEST_F(TerminalTest, SentencesHaveTheColourOfTheirFirstWord) {
  const Terminal coloured{80, true};
  EXPECT_EQ(Coloured("deadlock: rank 0 waits", coloured), "\033[31mdeadlock: rank 0 waits\033[0m");
  EXPECT_EQ(Coloured("upside", coloured), "upside");
  EXPECT_EQ(Coloured("died", {80, false}), "died");
}

}  // namespace
}  // namespace ferry::tools
