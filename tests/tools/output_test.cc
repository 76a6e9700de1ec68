// The output of ranks, and what many of them say once.
#include "tools/ferryrun/output.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <string>

namespace ferry::tools {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// ---- Output

class LineMixerTest : public testing::Test {
 protected:
  const std::string& text() { return *sink_.text(); }

  OutputSink sink_{-1};
  LineMixer lines_{&sink_};
  const uint64_t now_ns_ = 1'000'000'000;
  const uint64_t later_ns_ = now_ns_ + LineMixer::kPatienceNs;
};

TEST_F(LineMixerTest, ShowsABegunLineAtOnce) {
  const size_t rank = lines_.Add("");
  lines_.Feed(rank, "Name: ", now_ns_);
  EXPECT_EQ(text(), "Name: ");
  EXPECT_EQ(lines_.deadline_ns(), 0u);
  lines_.Feed(rank, "50%\r", now_ns_);
  lines_.Feed(rank, "60%\r", now_ns_);
  EXPECT_EQ(text(), "Name: 50%\r60%\r");
}

TEST_F(LineMixerTest, LabelsEveryLineOnce) {
  const size_t rank = lines_.Add("[1] ");
  lines_.Feed(rank, "ab", now_ns_);
  EXPECT_EQ(text(), "[1] ab");
  lines_.Feed(rank, "c\n\nd", now_ns_);
  EXPECT_EQ(text(), "[1] abc\n[1] \n[1] d");
  lines_.Finish(rank, now_ns_);
  EXPECT_EQ(text(), "[1] abc\n[1] \n[1] d\n");
  lines_.Finish(rank, now_ns_);
  EXPECT_EQ(text(), "[1] abc\n[1] \n[1] d\n");
}

TEST_F(LineMixerTest, LabelsEachPictureOfAProgressBar) {
  const size_t rank = lines_.Add("[0] ");
  lines_.Feed(rank, "10%\r", now_ns_);
  lines_.Feed(rank, "20%\r30", now_ns_);
  lines_.Feed(rank, "%\rdone\n", now_ns_);
  EXPECT_EQ(text(), "[0] 10%\r[0] 20%\r[0] 30%\r[0] done\n");
}

TEST_F(LineMixerTest, LabelsAProgressBarThatReturnsBeforeItWrites) {
  const size_t rank = lines_.Add("[0] ");
  lines_.Feed(rank, "\r10%", now_ns_);
  lines_.Feed(rank, "\r20%\n", now_ns_);
  EXPECT_EQ(text(), "\r[0] 10%\r[0] 20%\n");
}

TEST_F(LineMixerTest, ALineThatEndsAsThoseOfWindowsIsOne) {
  const size_t rank = lines_.Add("[0] ");
  lines_.Feed(rank, "a\r\nb\r", now_ns_);
  lines_.Feed(rank, "\nc\n", now_ns_);
  EXPECT_EQ(text(), "[0] a\r\n[0] b\r\n[0] c\n");
}

TEST_F(LineMixerTest, WordsAreNotWrittenOverAProgressBar) {
  const size_t one = lines_.Add("[0] ");
  const size_t other = lines_.Add("[1] ");
  lines_.Feed(one, "10%\r", now_ns_);
  lines_.Feed(other, "1%\r", now_ns_);
  lines_.Feed(one, "words\n20%\r", now_ns_);
  EXPECT_EQ(text(), "[0] 10%\r[1] 1%\r\n[0] words\n[0] 20%\r");
  lines_.Say("ferryrun: words\n");
  EXPECT_EQ(text(), "[0] 10%\r[1] 1%\r\n[0] words\n[0] 20%\r\nferryrun: words\n");
  lines_.Feed(one, "30%\r", now_ns_);
  lines_.FinishAll();
  EXPECT_EQ(text(), "[0] 10%\r[1] 1%\r\n[0] words\n[0] 20%\r\nferryrun: words\n[0] 30%\r\n\n");
}

TEST_F(LineMixerTest, OthersWaitForTheEndOfALine) {
  const size_t one = lines_.Add("");
  const size_t other = lines_.Add("");
  lines_.Feed(one, "aa", now_ns_);
  lines_.Feed(other, "bb", now_ns_);
  lines_.Feed(other, "bb\nb", now_ns_);
  EXPECT_EQ(text(), "aa");
  EXPECT_EQ(lines_.deadline_ns(), later_ns_);
  lines_.OnTime(later_ns_ - 1);
  EXPECT_EQ(text(), "aa");
  lines_.Feed(one, "aa\n", later_ns_ - 1);
  EXPECT_EQ(text(), "aaaa\nbbbb\nb");
  EXPECT_EQ(lines_.deadline_ns(), 0u);
}

TEST_F(LineMixerTest, OthersDoNotWaitForLong) {
  const size_t one = lines_.Add("");
  const size_t other = lines_.Add("");
  lines_.Feed(one, "Name: ", now_ns_);
  lines_.Feed(other, "b\n", now_ns_);
  // A progress bar that never ends its line does not put them off.
  lines_.Feed(one, "1\r", later_ns_ - 1);
  EXPECT_EQ(text(), "Name: 1\r");
  lines_.OnTime(later_ns_);
  EXPECT_EQ(text(), "Name: 1\rb\n");  // no byte is added
  lines_.Feed(one, "2\r", later_ns_);
  EXPECT_EQ(text(), "Name: 1\rb\n2\r");
}

TEST_F(LineMixerTest, OthersDoNotWaitWithMuch) {
  const size_t one = lines_.Add("");
  const size_t other = lines_.Add("");
  lines_.Feed(one, "a", now_ns_);
  lines_.Feed(other, std::string(1 << 17, 'b'), now_ns_);
  EXPECT_EQ(text().size(), 1u + (1 << 17));
}

TEST_F(LineMixerTest, ALineThatOthersBreakGetsALabelAgain) {
  const size_t one = lines_.Add("[0] ");
  const size_t other = lines_.Add("[1] ");
  lines_.Feed(one, "Name: ", now_ns_);
  lines_.Feed(other, "b\n", now_ns_);
  lines_.OnTime(later_ns_);
  EXPECT_EQ(text(), "[0] Name: \n[1] b\n");
  lines_.Feed(one, "rest\n", later_ns_);
  EXPECT_EQ(text(), "[0] Name: \n[1] b\n[0] rest\n");
}

TEST_F(LineMixerTest, OurOwnLinesStandByThemselves) {
  const size_t rank = lines_.Add("");
  lines_.Feed(rank, "50%", now_ns_);
  lines_.Say("ferryrun: rank 0 failed\n");
  lines_.Say("ferryrun: ended\n");
  EXPECT_EQ(text(), "50%\nferryrun: rank 0 failed\nferryrun: ended\n");
}

TEST_F(LineMixerTest, ASourceThatEndedKeepsNobodyWaiting) {
  const size_t one = lines_.Add("");
  const size_t other = lines_.Add("");
  lines_.Feed(one, "a", now_ns_);
  lines_.Finish(one, now_ns_);
  lines_.Feed(other, "b", now_ns_);
  EXPECT_EQ(text(), "ab");
}

TEST_F(LineMixerTest, FinishAllLeavesNothing) {
  const size_t one = lines_.Add("");
  const size_t other = lines_.Add("");
  const size_t third = lines_.Add("[2] ");
  lines_.Feed(one, "a", now_ns_);
  lines_.Feed(other, "b", now_ns_);
  lines_.Feed(third, "c", now_ns_);
  lines_.FinishAll();
  EXPECT_EQ(text(), "ab\n[2] c\n");
}

TEST(OutputSinkTest, NeverBlocksOnAFullPipe) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  OutputSink sink(ends[1]);
  const std::string text(2 << 20, 'z');
  *sink.text() = text;
  EXPECT_TRUE(sink.IsFull());
  EXPECT_EQ(sink.Flush(), 0);
  EXPECT_FALSE(sink.empty());

  std::string received;
  std::string block(1 << 16, '\0');
  while (received.size() < text.size()) {
    const ssize_t size = read(ends[0], block.data(), block.size());
    ASSERT_GT(size, 0);
    received.append(block, 0, static_cast<size_t>(size));
    EXPECT_EQ(sink.Flush(), 0);
  }
  EXPECT_EQ(received, text);
  EXPECT_TRUE(sink.empty());
  close(ends[0]);
  close(ends[1]);
}

TEST(OutputSinkTest, ReportsAClosedPipeAndDropsTheText) {
  signal(SIGPIPE, SIG_IGN);
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  close(ends[0]);
  OutputSink sink(ends[1]);
  *sink.text() = "lost\n";
  EXPECT_EQ(sink.Flush(), EPIPE);
  EXPECT_TRUE(sink.empty());
  close(ends[1]);
}

// ---- Equal lines

constexpr uint64_t kNow = 1'000'000'000;
constexpr uint64_t kAll = UINT64_MAX;

std::string LineOf(uint32_t rank) {
  return "libferry: rank " + std::to_string(rank) + ": MPI_Init: no\n";
}

TEST(SameWordsTest, ShowsTheFirstAndCountsTheOthers) {
  SameWords words;
  EXPECT_EQ(words.Sift(7, LineOf(7), kNow), LineOf(7));
  EXPECT_EQ(words.deadline_ns(), 0u);
  for (uint32_t rank = 0; rank < 256; ++rank) {
    if (rank != 7) {
      EXPECT_EQ(words.Sift(rank, LineOf(rank), kNow + rank), "");
    }
  }
  EXPECT_EQ(words.deadline_ns(), kNow + 255 + SameWords::kQuietNs);
  EXPECT_THAT(words.TakeDue(words.deadline_ns() - 1), IsEmpty());
  EXPECT_THAT(words.TakeDue(words.deadline_ns()),
              ElementsAre("the same from 255 more ranks (0-6, 8-255): MPI_Init: no"));
  EXPECT_EQ(words.deadline_ns(), 0u);
  EXPECT_THAT(words.TakeDue(kAll), IsEmpty());
}

TEST(SameWordsTest, LateOnesAreToldOfByThemselves) {
  SameWords words;
  words.Sift(0, LineOf(0), kNow);
  words.Sift(1, LineOf(1), kNow);
  words.TakeDue(kAll);
  EXPECT_EQ(words.Sift(2, LineOf(2), kNow), "");
  EXPECT_THAT(words.TakeDue(kAll), ElementsAre("the same from 1 more rank (2): MPI_Init: no"));
}

TEST(SameWordsTest, ALongBurstIsToldOfInTime) {
  SameWords words;
  words.Sift(0, LineOf(0), kNow);
  uint64_t now_ns = kNow;
  for (uint32_t rank = 1; rank < 60; ++rank, now_ns += SameWords::kQuietNs / 2) {
    words.Sift(rank, LineOf(rank), now_ns);
  }
  EXPECT_EQ(words.deadline_ns(), kNow + SameWords::kPatienceNs);
}

TEST(SameWordsTest, ARankThatRepeatsItselfIsHeard) {
  SameWords words;
  words.Sift(0, LineOf(0), kNow);
  words.Sift(1, LineOf(1), kNow);
  EXPECT_EQ(words.Sift(0, LineOf(0), kNow), LineOf(0));
  EXPECT_EQ(words.Sift(1, LineOf(1), kNow), "");
  EXPECT_THAT(words.TakeDue(kAll), ElementsAre("the same from 1 more rank (1): MPI_Init: no",
                                               "the same from 1 more rank (1): MPI_Init: no"));
}

TEST(SameWordsTest, OtherWordsAreShown) {
  SameWords words;
  EXPECT_EQ(words.Sift(0, LineOf(0), kNow), LineOf(0));
  EXPECT_EQ(words.Sift(1, "libferry: MPI_Init: maybe\n", kNow), "libferry: MPI_Init: maybe\n");
  // Of another rank than the one that says it: another thing.
  EXPECT_EQ(words.Sift(1, LineOf(0), kNow), LineOf(0));
  EXPECT_EQ(words.deadline_ns(), 0u);
}

TEST(SameWordsTest, TheProgramsOwnLinesAreAllThere) {
  SameWords words;
  words.Sift(0, LineOf(0), kNow);
  const std::string own = "warning: no\n\nrank 1: MPI_Init: no\n libferry: no\nx";
  EXPECT_EQ(words.Sift(0, own, kNow), own);
  EXPECT_EQ(words.Sift(1, own.substr(0, own.size() - 1) + LineOf(1) + "50%", kNow),
            own.substr(0, own.size() - 1) + "50%");
  // In the middle of a line, and in pieces: not known for the library's.
  EXPECT_EQ(words.Sift(1, LineOf(1), kNow), LineOf(1));
  EXPECT_EQ(words.Sift(2, "libferry: rank 2: MPI", kNow), "libferry: rank 2: MPI");
  EXPECT_EQ(words.Sift(2, "_Init: no\n", kNow), "_Init: no\n");
  EXPECT_EQ(words.Sift(2, LineOf(2), kNow), "");
}

TEST(SameWordsTest, RemembersSomeAndForgetsNobody) {
  SameWords words;
  EXPECT_TRUE(words.IsNew(0, "first", kNow));
  EXPECT_FALSE(words.IsNew(1, "first", kNow));
  for (int i = 0; i < 64; ++i) {
    EXPECT_TRUE(words.IsNew(0, std::to_string(i), kNow));
  }
  EXPECT_NE(words.deadline_ns(), 0u);
  EXPECT_THAT(words.TakeDue(kNow), ElementsAre("the same from 1 more rank (1): first"));
  EXPECT_TRUE(words.IsNew(2, "first", kNow));
}

TEST(SameWordsTest, ListsOfRanksHaveAnEnd) {
  SameWords words;
  for (uint32_t rank = 0; rank < 1024; rank += 2) {
    words.IsNew(rank, "odd", kNow);
  }
  EXPECT_THAT(words.TakeDue(kAll),
              ElementsAre("the same from 511 more ranks (2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, "
                          "24, 26, 28, 30, 32, ...): odd"));
}

}  // namespace
}  // namespace ferry::tools
