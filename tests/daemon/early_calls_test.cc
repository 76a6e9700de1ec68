// Calls that a client begins before it has acknowledged the server's settings.
#include "daemon/control/early_calls.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <span>
#include <string>
#include <string_view>

#include "daemon/control/http2_frames.h"

namespace ferry::daemon {
namespace {

using http2::Frame;
using http2::FrameType;

constexpr uint32_t kMost = 3;
const std::string kGreeting =
    std::string(http2::kClientPreface) + Frame(FrameType::kSettings, 0, 0, std::string(6, '\1'));
const std::string kAcknowledgement = Frame(FrameType::kSettings, http2::kAck, 0, {});

std::string Calls(uint32_t count) {
  std::string calls;
  for (uint32_t i = 0; i < count; ++i) {
    // Text that looks like a call or an acknowledgement inside a frame is payload.
    const std::string payload = kAcknowledgement + Frame(FrameType::kHeaders, 0, 1, {});
    calls += Frame(FrameType::kHeaders, http2::kEndHeaders, 2 * i + 1, payload);
    calls += Frame(FrameType::kPing, 0, 0, payload);
  }
  return calls;
}

// Sends the text in pieces of one size; the last one is the rest.
bool Say(EarlyCalls& calls, std::string_view text, size_t piece) {
  for (; !text.empty(); text.remove_prefix(std::min(piece, text.size()))) {
    if (!calls.OnClientSaid(std::as_bytes(std::span(text.substr(0, piece))))) {
      return false;
    }
  }
  return true;
}

TEST(EarlyCallsTest, AreBoundedHoweverTheBytesAreCut) {
  for (const size_t piece : {1, 2, 8, 9, 10, 25, 1000}) {
    EarlyCalls few(kMost);
    EarlyCalls many(kMost);
    EXPECT_TRUE(Say(few, kGreeting + Calls(kMost), piece)) << piece;
    EXPECT_FALSE(Say(many, kGreeting + Calls(kMost + 1), piece)) << piece;
    EXPECT_FALSE(Say(many, "more", piece)) << "it stays so";
  }
}

TEST(EarlyCallsTest, AfterTheAcknowledgementNoneIsCounted) {
  EarlyCalls calls(kMost);
  EXPECT_TRUE(Say(calls, kGreeting + Calls(kMost), 7));
  calls.OnServerSpoke();
  EXPECT_TRUE(Say(calls, kAcknowledgement + Calls(10 * kMost), 7));
}

TEST(EarlyCallsTest, WhatTheServerHasNotSaidCannotBeAcknowledged) {
  EarlyCalls calls(kMost);
  EXPECT_TRUE(Say(calls, kGreeting + kAcknowledgement, 7));
  calls.OnServerSpoke();
  EXPECT_FALSE(Say(calls, Calls(kMost + 1), 7));
}

}  // namespace
}  // namespace ferry::daemon
