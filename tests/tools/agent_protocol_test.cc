#include "tools/ferryrun/agent_protocol.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tools/ferryrun/agent_messages.h"

namespace ferry::tools {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string TwoFrames() {
  std::string stream;
  AppendFrame(FrameKind::kOutput, 7, "\1hello", &stream);
  AppendFrame(FrameKind::kCreated, 0, "", &stream);
  return stream;
}

TEST(FrameReaderTest, TakesFramesOutOfPiecesOfAnySize) {
  const std::string stream = TwoFrames();
  for (size_t piece = 1; piece <= stream.size(); ++piece) {
    FrameReader reader(/*greeting=*/false);
    std::vector<Frame> frames;
    for (size_t at = 0; at < stream.size(); at += piece) {
      reader.Feed(std::string_view(stream).substr(at, piece));
      for (auto frame = reader.Next(); frame.ok() && frame->has_value(); frame = reader.Next()) {
        frames.push_back(**frame);
      }
    }
    ASSERT_EQ(frames.size(), 2U) << piece;
    EXPECT_EQ(frames[0].kind, FrameKind::kOutput);
    EXPECT_EQ(frames[0].rank, 7U);
    EXPECT_EQ(frames[0].payload, "\1hello");
    EXPECT_EQ(frames[1].kind, FrameKind::kCreated);
  }
}

TEST(FrameReaderTest, SkipsWhatALoginPrints) {
  FrameReader reader(/*greeting=*/true);
  reader.Feed("Welcome!\nYou have mail.\n" + Greeting() + TwoFrames());
  const auto frame = reader.Next();
  ASSERT_TRUE(frame.ok() && frame->has_value());
  EXPECT_EQ((*frame)->rank, 7U);
  EXPECT_EQ(reader.preamble(), "Welcome!\nYou have mail.\n");
}

TEST(FrameReaderTest, RefusesAnotherReleaseAndSizesBeyondReason) {
  FrameReader other(/*greeting=*/true);
  other.Feed("FERRYRUN-AGENT 0.0.1 1.1\n");
  EXPECT_EQ(other.Next().status().code(), ErrorCode::kVersionMismatch);
  EXPECT_THAT(other.Next().ok(), true);  // it is read no further
  FrameReader damaged(/*greeting=*/false);
  damaged.Feed(std::string(12, '\xff'));
  EXPECT_EQ(damaged.Next().status().code(), ErrorCode::kCorrupt);
}

TEST(AgentPayloadTest, NumbersEndsAndErrors) {
  EXPECT_EQ(ReadNumber({FrameKind::kSignal, 0, NumberPayload(-5)}), -5);
  EXPECT_EQ(ReadNumber({FrameKind::kSignal, 0, "x"}), 'x');
  const ProcessEnd end = ReadEnd(
      {FrameKind::kEnded, 0, EndPayload({.exit_code = 3, .signal = 11, .dumped_core = true})});
  EXPECT_EQ(end.exit_code, 3);
  EXPECT_EQ(end.signal, 11);
  EXPECT_TRUE(end.dumped_core);
  const Status failed =
      ReadFailed({FrameKind::kFailed, 0, FailedPayload({ErrorCode::kNotFound, "no such thing"})});
  EXPECT_EQ(failed.code(), ErrorCode::kNotFound);
  EXPECT_EQ(failed.message(), "no such thing");
  EXPECT_EQ(ReadFailed({FrameKind::kFailed, 0, ""}).code(), ErrorCode::kInternal);
}

TEST(AgentMessagesTest, SurviveTheJourney) {
  const auto rank = ReadRank(ToText(AgentRank{.program = {"a b", "\xff\xfe"},
                                              .variables = {"A=\n", "B="},
                                              .directory = "/x",
                                              .must = true}));
  ASSERT_TRUE(rank.ok()) << rank.status().message();
  EXPECT_THAT(rank->program, ElementsAre("a b", "\xff\xfe"));
  EXPECT_THAT(rank->variables, ElementsAre("A=\n", "B="));
  EXPECT_EQ(rank->directory, "/x");
  EXPECT_TRUE(rank->must);

  AgentSetUp set_up;
  set_up.host = "b";
  set_up.options = {"FERRY_SPIN_PAUSES=7"};
  set_up.needs_address = true;
  set_up.grace_ms = 77;
  const auto read = ReadSetUp(ToText(set_up));
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(read->host, "b");
  EXPECT_THAT(read->options, ElementsAre("FERRY_SPIN_PAUSES=7"));
  EXPECT_TRUE(read->needs_address);
  EXPECT_FALSE(read->private_daemon);
  EXPECT_EQ(read->grace_ms, 77U);

  const auto serve = ReadServe(ToText(AgentServe{.private_daemon = true,
                                                 .node = 3,
                                                 .authority = "pem",
                                                 .authority_key = "key",
                                                 .binding = Binding::kSocket,
                                                 .ranks = 5}));
  ASSERT_TRUE(serve.ok()) << serve.status().message();
  EXPECT_EQ(serve->node, 3U);
  EXPECT_EQ(serve->authority_key, "key");
  EXPECT_EQ(serve->binding, Binding::kSocket);
}

TEST(AgentMessagesTest, DamagedOnesAreRefused) {
  const std::string good = ToText(AgentServing{"/run", "a:1"});
  for (size_t size = 0; size < good.size(); ++size) {
    EXPECT_EQ(ReadServing(good.substr(0, size)).status().code(), ErrorCode::kCorrupt) << size;
  }
  EXPECT_EQ(ReadServe(good).status().code(), ErrorCode::kCorrupt);
  EXPECT_EQ(ReadRank("").status().code(), ErrorCode::kCorrupt);
}

}  // namespace
}  // namespace ferry::tools
