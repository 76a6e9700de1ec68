#include "tools/ferryrun/output.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <string>

namespace ferry::tools {
namespace {

TEST(LineSplitterTest, LabelsWholeLinesOnly) {
  LineSplitter lines("[1] ");
  std::string out;
  lines.Feed("ab", &out);
  EXPECT_EQ(out, "");
  lines.Feed("c\n\nd", &out);
  EXPECT_EQ(out, "[1] abc\n[1] \n");
  lines.Finish(&out);
  EXPECT_EQ(out, "[1] abc\n[1] \n[1] d\n");
  lines.Finish(&out);
  EXPECT_EQ(out, "[1] abc\n[1] \n[1] d\n");
}

TEST(LineSplitterTest, ChangesNothingWithoutALabel) {
  LineSplitter lines("");
  std::string out;
  lines.Feed("a\nb", &out);
  lines.Finish(&out);
  EXPECT_EQ(out, "a\nb");
}

TEST(LineSplitterTest, BoundsWhatALineMayHold) {
  LineSplitter lines("> ");
  std::string out;
  lines.Feed(std::string(LineSplitter::kMaxLineBytes + 1, 'x'), &out);
  EXPECT_EQ(out.size(), LineSplitter::kMaxLineBytes + 4);
  lines.Feed("y\n", &out);
  EXPECT_TRUE(out.ends_with("x\n> y\n"));
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

}  // namespace
}  // namespace ferry::tools
