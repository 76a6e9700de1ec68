#include "tools/ferryrun/remote_host.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <memory>
#include <string>
#include <vector>

#include "tools/ferryrun/agent_protocol.h"

namespace ferry::tools {
namespace {

using testing::HasSubstr;

constexpr int kPatienceMs = 60'000;

// A shell in an agent's place.
std::unique_ptr<RemoteHost> StartShell(const std::string& script) {
  StatusOr<std::unique_ptr<RemoteHost>> host = RemoteHost::Start("there", {"sh", "-c", script});
  EXPECT_TRUE(host.ok()) << host.status().ToString();
  return host.ok() ? std::move(*host) : nullptr;
}

// An agent that says back whatever it is told.
std::string EchoScript() { return "printf '%s' '" + Greeting() + "'; exec cat"; }

bool HasWords(const RemoteHost& host, int timeout_ms) {
  pollfd words = host.WordsInterest();
  return poll(&words, 1, timeout_ms) == 1 && (words.revents & POLLIN) != 0;
}

// Takes frames until one has come.
Frame NextFrame(RemoteHost* host) {
  while (true) {
    const StatusOr<std::optional<Frame>> frame = host->Next();
    EXPECT_TRUE(frame.ok()) << frame.status().ToString();
    if (!frame.ok() || frame->has_value()) {
      return frame.ok() ? **frame : Frame{};
    }
    if (!HasWords(*host, kPatienceMs)) {
      ADD_FAILURE() << "nothing came";
      return {};
    }
    host->Advance();
  }
}

TEST(RemoteHostTest, SendingTakesNothingFromThoseWhoPollForWords) {
  const std::unique_ptr<RemoteHost> host = StartShell(EchoScript());
  ASSERT_NE(host, nullptr);
  host->Send(FrameKind::kEnded, 3, EndPayload({.exit_code = 7}));
  while (NextFrame(host.get()).kind != FrameKind::kEnded) {
  }
  host->Send(FrameKind::kEnded, 4, EndPayload({.exit_code = 8}));
  ASSERT_TRUE(HasWords(*host, kPatienceMs));
  // Somebody else has words for the host meanwhile.
  host->Send(FrameKind::kSignal, 0, NumberPayload(15));
  EXPECT_TRUE(HasWords(*host, 0));
  const Frame ended = NextFrame(host.get());
  EXPECT_EQ(ended.kind, FrameKind::kEnded);
  EXPECT_EQ(ended.rank, 4U);
  EXPECT_EQ(ReadEnd(ended).exit_code, 8);
  EXPECT_EQ(NextFrame(host.get()).kind, FrameKind::kSignal);
}

TEST(RemoteHostTest, WhatComesBehindAnAwaitedAnswerIsKept) {
  StatusOr<SignalSource> signals = SignalSource::Create();
  ASSERT_TRUE(signals.ok()) << signals.status().ToString();
  const std::unique_ptr<RemoteHost> host = StartShell(EchoScript());
  ASSERT_NE(host, nullptr);
  host->Send(FrameKind::kCreated, 0, "");
  host->Send(FrameKind::kDaemonEnded, 0, "its words");
  const StatusOr<Frame> created = host->Await(FrameKind::kCreated, kPatienceMs, &*signals);
  ASSERT_TRUE(created.ok()) << created.status().ToString();
  const Frame next = NextFrame(host.get());
  EXPECT_EQ(next.kind, FrameKind::kDaemonEnded);
  EXPECT_EQ(next.payload, "its words");
}

TEST(RemoteHostTest, ALauncherThatEndsIsQuoted) {
  StatusOr<SignalSource> signals = SignalSource::Create();
  ASSERT_TRUE(signals.ok()) << signals.status().ToString();
  const std::unique_ptr<RemoteHost> host = StartShell("echo 'no route to host' >&2; exit 255");
  ASSERT_NE(host, nullptr);
  const StatusOr<Frame> found = host->Await(FrameKind::kFound, kPatienceMs, &*signals);
  ASSERT_FALSE(found.ok());
  EXPECT_EQ(found.status().code(), ErrorCode::kNodeUnreachable);
  EXPECT_THAT(found.status().message(), HasSubstr("exited with code 255"));
  EXPECT_THAT(found.status().message(), HasSubstr("no route to host"));
}

}  // namespace
}  // namespace ferry::tools
