// A relay (ferryrun --relay), told by hand what ferryrun would tell it, with scripts in the places
// of agents and of relays below it; and ferryrun's end of a connection to a relay, with a script in
// the place of that.
#include "tools/ferryrun/relay.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/clock.h"
#include "tests/support/patience.h"
#include "tools/ferryrun/agent_protocol.h"
#include "tools/ferryrun/agent_tree.h"
#include "tools/ferryrun/launcher_process.h"
#include "tools/ferryrun/relay_link.h"

namespace ferry::tools {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

constexpr char kFerryrun[] = "tools/ferryrun/ferryrun";

std::string Script(const std::string& name, const std::string& text) {
  std::string path = testing::TempDir() + name;
  std::ofstream(path) << "#!/bin/sh\n" << text;
  fs::permissions(path, fs::perms::owner_all);
  return path;
}

// Returns a line of a shell's script that writes these bytes, whatever they are.
std::string Writing(const std::string& bytes) {
  const std::string path = testing::TempDir() + "bytes";
  std::ofstream(path) << bytes;
  return "cat " + path + "\n";
}

RelayTree Tree(uint32_t first_channel, const std::vector<std::string>& hosts, uint64_t radix,
               const std::string& launcher = "") {
  return {.first_channel = first_channel,
          .hosts = hosts,
          .launcher = "ssh",
          .rsh = launcher,
          .program = "program",
          .radix = radix,
          .grace_ms = 100};
}

std::string FrameText(FrameKind kind, uint32_t channel, const std::string& payload) {
  std::string text;
  AppendFrame(kind, channel, payload, &text);
  return text;
}

// ---- The relay ----------------------------------------------------------------------------------

// A relay on host "own", channel 10, with `launcher` to reach the others, from channel 11 on.
class RelayTest : public testing::Test {
 protected:
  void Start(const std::string& launcher, const std::vector<std::string>& others,
             uint64_t radix = 64) {
    StatusOr<std::unique_ptr<LauncherProcess>> relay =
        LauncherProcess::Start({kFerryrun, "--relay"});
    ASSERT_TRUE(relay.ok()) << relay.status().ToString();
    relay_ = std::move(*relay);
    std::vector<std::string> hosts = {"own"};
    hosts.insert(hosts.end(), others.begin(), others.end());
    Send(FrameKind::kTree, 0, ToText(Tree(10, hosts, radix, launcher)));
  }
  void Send(FrameKind kind, uint32_t channel, const std::string& payload) {
    relay_->Write(FrameText(kind, channel, payload));
  }

  // Receives until `condition` holds. False: the relay ended before, or nothing came for long.
  bool ReceiveUntil(const std::function<bool()>& condition) {
    const uint64_t deadline_ns = MonotonicNs() + tests::kPatienceMs * 1'000'000ULL;
    while (!condition() && !relay_->ended() && MonotonicNs() < deadline_ns) {
      pollfd fds[] = {relay_->WordsInterest(), relay_->RoomInterest()};
      poll(fds, 2, 1000);
      relay_->Advance();
      reader_.Feed(relay_->Take());
      StatusOr<std::optional<Frame>> frame = reader_.Next();
      for (; frame.ok() && frame->has_value(); frame = reader_.Next()) {
        Note(**frame);
      }
      EXPECT_TRUE(frame.ok()) << frame.status().ToString();
    }
    return condition();
  }
  bool OutputIs(uint32_t channel, const std::string& text) {
    return ReceiveUntil([&] { return output_[channel] == text; });
  }
  bool Ends(uint32_t channel) {
    return ReceiveUntil([&] { return ends_.contains(channel); });
  }
  bool RelayEnds() {
    return ReceiveUntil([&] { return relay_->ended(); });
  }

  std::map<uint32_t, std::string> output_;
  std::map<uint32_t, std::string> errors_;
  std::map<uint32_t, std::string> ends_;
  std::map<uint32_t, size_t> room_;
  std::unique_ptr<LauncherProcess> relay_;

 private:
  void Note(const Frame& frame) {
    switch (frame.kind) {
      case FrameKind::kChannelOutput:
        output_[frame.rank] += frame.payload;
        return;
      case FrameKind::kChannelErrors:
        errors_[frame.rank] += frame.payload;
        return;
      case FrameKind::kChannelEnd:
        EXPECT_FALSE(ends_.contains(frame.rank)) << "a channel ends once";
        ends_[frame.rank] = frame.payload;
        return;
      case FrameKind::kChannelRoom:
        room_[frame.rank] += static_cast<size_t>(ReadNumber(frame));
        return;
      default:
        ADD_FAILURE() << "kind " << static_cast<uint32_t>(frame.kind);
    }
  }

  FrameReader reader_{/*greeting=*/true};
};

TEST_F(RelayTest, FramesMayArriveInPieces) {
  Start(Script("echo", "exec cat"), {"a", "b"});
  const std::string frames = FrameText(FrameKind::kChannelInput, 11, "one ") +
                             FrameText(FrameKind::kChannelInput, 12, "other") +
                             FrameText(FrameKind::kChannelInput, 11, "") +
                             FrameText(FrameKind::kChannelInput, 11, "two");
  for (const char byte : frames) {
    relay_->Write({&byte, 1});
    while (relay_->waiting_bytes() > 0) {
      relay_->Transmit();
    }
  }
  EXPECT_TRUE(OutputIs(11, "one two"));
  EXPECT_TRUE(OutputIs(12, "other"));
  EXPECT_TRUE(OutputIs(10, Greeting())) << "the agent on the relay's own host";
}

TEST_F(RelayTest, AnEndComesLastAndWithItsWords) {
  Start(Script("fails", "echo some words; echo no route to $1 >&2; exit 255"), {"a"});
  ASSERT_TRUE(Ends(11));
  EXPECT_EQ(output_[11], "some words\n");
  EXPECT_EQ(errors_[11], "no route to a\n");
  EXPECT_THAT(ends_[11], HasSubstr("fails on host own exited with code 255"));
  Send(FrameKind::kChannelInput, 11, "too late");
  Send(FrameKind::kChannelRoom, 11, NumberPayload(1));
  EXPECT_FALSE(ends_.contains(10));
  Send(FrameKind::kChannelClose, 10, "");
  EXPECT_TRUE(RelayEnds()) << "once all have ended";
  EXPECT_EQ(ends_[10], "the agent on host own exited with code 0");
}

TEST_F(RelayTest, ALauncherThatIsNotThereIsNamed) {
  Start("/nonexistent/ssh", {"a", "b", "c"}, /*radix=*/2);
  ASSERT_TRUE(Ends(11) && Ends(12) && Ends(13));
  EXPECT_THAT(ends_[13], AllOf(HasSubstr("cannot run '/nonexistent/ssh'"), HasSubstr("host own")));
}

// ---- Agents that are slow ----

TEST_F(RelayTest, OutputThatNobodyTakesKeepsNobodyWaiting) {
  Start(Script("floods", "case $1 in a) exec yes ;; *) exec cat ;; esac"), {"a", "b"});
  ASSERT_TRUE(ReceiveUntil([&] { return output_[11].size() == kChannelWindowBytes; }));
  Send(FrameKind::kChannelInput, 12, "still here");
  EXPECT_TRUE(OutputIs(12, "still here"));
  EXPECT_EQ(output_[11].size(), kChannelWindowBytes) << "no more than the window";
  Send(FrameKind::kChannelRoom, 11, NumberPayload(1000));
  EXPECT_TRUE(ReceiveUntil([&] { return output_[11].size() == kChannelWindowBytes + 1000; }));
}

TEST_F(RelayTest, AnAgentThatTakesNothingKeepsNobodyWaiting) {
  Start(Script("sleeps", "case $1 in a) exec sleep 1000 ;; *) exec cat ;; esac"), {"a", "b"});
  for (size_t sent = 0; sent < kChannelWindowBytes; sent += 1 << 14) {
    Send(FrameKind::kChannelInput, 11, std::string(1 << 14, 'x'));
  }
  Send(FrameKind::kChannelInput, 12, "still here");
  EXPECT_TRUE(OutputIs(12, "still here"));
  EXPECT_LT(room_[11], kChannelWindowBytes) << "what waits in the relay has not gone on";
}

TEST_F(RelayTest, InputThatHasGoneOnMakesRoom) {
  Start(Script("takes", "exec cat > /dev/null"), {"a"});
  for (int window = 1; window <= 4; ++window) {
    for (size_t sent = 0; sent < kChannelWindowBytes / 2; sent += 1 << 14) {
      Send(FrameKind::kChannelInput, 11, std::string(1 << 14, 'x'));
    }
    // Told in parts of a quarter of the window.
    ASSERT_TRUE(ReceiveUntil(
        [&] { return room_[11] > static_cast<size_t>(window - 1) * kChannelWindowBytes / 2; }));
  }
}

// ---- Bytes for several agents ----

TEST_F(RelayTest, SharedBytesStandWhereTheyAreNamed) {
  Start(Script("shares", "exec cat"), {"a", "b"});
  const std::string much(3 * kChannelWindowBytes, 's');
  Send(FrameKind::kShared, 0, much);
  Send(FrameKind::kShared, 1, "second ");
  for (const uint32_t channel : {11, 12}) {
    Send(FrameKind::kChannelInput, channel, "before ");
    Send(FrameKind::kChannelShared, channel, NumberPayload(1));
  }
  Send(FrameKind::kChannelInput, 12, "after");
  EXPECT_TRUE(OutputIs(11, "before second "));
  EXPECT_TRUE(OutputIs(12, "before second after"));
  // More than the window, and told of as it goes on.
  Send(FrameKind::kChannelShared, 11, NumberPayload(0));
  size_t given = 0;
  EXPECT_TRUE(ReceiveUntil([&] {
    if (const size_t more = output_[11].size() - given; more > 0) {
      Send(FrameKind::kChannelRoom, 11, NumberPayload(static_cast<int32_t>(more)));
      given += more;
    }
    return output_[11].size() == std::strlen("before second ") + much.size();
  }));
  EXPECT_GT(room_[11], much.size() - kChannelWindowBytes / 4);
  EXPECT_TRUE(output_[11].ends_with(much));
}

TEST_F(RelayTest, SharedBytesReachRelaysBehind) {
  const std::string program = fs::absolute(kFerryrun).string();
  Start(Script("leads", "case $3 in --relay) exec " + program + " --relay ;; esac; exec cat"),
        {"a", "b", "c"}, /*radix=*/1);
  Send(FrameKind::kShared, 0, "shared");
  Send(FrameKind::kChannelShared, 13, NumberPayload(0));
  EXPECT_TRUE(OutputIs(13, "shared"));
}

// ---- What no ferryrun sends ----

class HostileOrdersTest : public RelayTest, public testing::WithParamInterface<std::string> {};

TEST_P(HostileOrdersTest, EndTheRelayAndAllThatItHasStarted) {
  Start(Script("keeps", "exec cat"), {"a"});
  ASSERT_TRUE(OutputIs(10, Greeting()));
  relay_->Write(GetParam());
  EXPECT_TRUE(RelayEnds());
  EXPECT_EQ(relay_->HowEnded("it"), "it exited with code 0");
  EXPECT_THAT(relay_->ReadErrors(1 << 12), HasSubstr("ferryrun: a relay got "));
}

std::string Header(uint32_t size, FrameKind kind, uint32_t channel) {
  const FrameHeader header{size, static_cast<uint32_t>(kind), channel};
  return {reinterpret_cast<const char*>(&header), sizeof(header)};
}

INSTANTIATE_TEST_SUITE_P(
    All, HostileOrdersTest,
    testing::Values(
        FrameText(FrameKind::kChannelInput, 9, "x"), FrameText(FrameKind::kChannelInput, 12, "x"),
        FrameText(FrameKind::kChannelClose, UINT32_MAX, ""), FrameText(FrameKind::kStop, 11, ""),
        FrameText(FrameKind::kChannelShared, 11, NumberPayload(0)),
        FrameText(FrameKind::kShared, 1, "x"), FrameText(FrameKind::kChannelEnd, 11, ""),
        FrameText(static_cast<FrameKind>(999), 11, ""),
        FrameText(FrameKind::kChannelInput, 11, std::string(kChannelWindowBytes + 1, 'x')),
        FrameText(FrameKind::kChannelRoom, 11, NumberPayload(1)),
        FrameText(FrameKind::kChannelRoom, 11, NumberPayload(-1)),
        FrameText(FrameKind::kTree, 0, "no CBOR"),
        FrameText(FrameKind::kTree, 0, ToText(Tree(0, {"b"}, 1))),
        Header(UINT32_MAX, FrameKind::kChannelInput, 11), Header(1U << 31, FrameKind::kTree, 0)));

TEST(RelayTreeTest, WhatCannotBeIsRefused) {
  const RelayTree good = Tree(3, {"a", "b"}, 2);
  ASSERT_TRUE(ReadTree(ToText(good)).ok());
  for (const auto& change : std::vector<std::function<void(RelayTree*)>>{
           [](RelayTree* tree) { tree->hosts.clear(); }, [](RelayTree* tree) { tree->radix = 0; },
           [](RelayTree* tree) { tree->first_channel = UINT32_MAX; },
           [](RelayTree* tree) { tree->hosts[1] = "-oProxyCommand=x"; }}) {
    RelayTree bad = good;
    change(&bad);
    EXPECT_EQ(ReadTree(ToText(bad)).status().code(), ErrorCode::kCorrupt);
  }
}

// ---- What no relay sends ----

// By a relay below, on host "a" with channels 11 and 12; "c" is a host with an agent.
class HostileRelayTest : public RelayTest, public testing::WithParamInterface<std::string> {};

TEST_P(HostileRelayTest, EndsTheHostsBehindItOnly) {
  Start(Script("lies", "if [ $1 = c ]; then exec cat; fi\n" + Writing(Greeting() + GetParam()) +
                           "exec sleep 1000"),
        {"a", "b", "c"}, /*radix=*/2);
  ASSERT_TRUE(Ends(11) && Ends(12));
  EXPECT_THAT(ends_[12], HasSubstr("lies to host a on host own brings no relay's words"));
  Send(FrameKind::kChannelInput, 13, "still here");
  EXPECT_TRUE(OutputIs(13, "still here"));
}

INSTANTIATE_TEST_SUITE_P(
    All, HostileRelayTest,
    testing::Values(FrameText(FrameKind::kChannelOutput, 13, "of another host"),
                    FrameText(FrameKind::kChannelOutput, 10, "of another host"),
                    FrameText(FrameKind::kChannelInput, 11, "x"),
                    FrameText(FrameKind::kStopped, 11, ""),
                    FrameText(FrameKind::kChannelOutput, 11,
                              std::string(kChannelWindowBytes + 1, 'x')),
                    Header(UINT32_MAX, FrameKind::kChannelOutput, 11)));

TEST_F(RelayTest, ARelayOfAnotherReleaseIsNamed) {
  Start(Script("old", "if [ $1 = c ]; then exec cat; fi\necho FERRYRUN-AGENT 0.0.1; sleep 1000"),
        {"a", "b", "c"}, /*radix=*/2);
  ASSERT_TRUE(Ends(11) && Ends(12));
  EXPECT_THAT(ends_[11], HasSubstr("the ferryrun there is of another release"));
}

// ---- Ferryrun's end -----------------------------------------------------------------------------

class RelayLinkTest : public testing::Test {
 protected:
  // A script in the place of a relay on host "a", which is also reached with "b".
  void Start(const std::string& script) {
    StatusOr<std::vector<std::unique_ptr<HostStream>>> streams =
        StartRelay({"sh", "-c", script}, Tree(5, {"a", "b"}, 2));
    ASSERT_TRUE(streams.ok()) << streams.status().ToString();
    ASSERT_THAT(*streams, SizeIs(2));
    streams_ = std::move(*streams);
  }
  // Takes from a stream, by its turns in poll alone, until `text` has come, or it ends.
  std::string TakeUntil(size_t host, const std::string& text) {
    std::string taken = streams_[host]->Take();
    while (taken.find(text) == std::string::npos && !streams_[host]->ended()) {
      pollfd words = streams_[host]->WordsInterest();
      if (poll(&words, 1, tests::kPatienceMs) <= 0) {
        break;
      }
      streams_[host]->Advance();
      taken += streams_[host]->Take();
    }
    return taken;
  }

  std::vector<std::unique_ptr<HostStream>> streams_;
};

TEST_F(RelayLinkTest, EachStreamHasItsOwnBytes) {
  Start(Writing("Welcome\n" + Greeting() + FrameText(FrameKind::kChannelOutput, 6, "of b ") +
                FrameText(FrameKind::kChannelErrors, 6, "warning of b") +
                FrameText(FrameKind::kChannelOutput, 5, "of a") +
                FrameText(FrameKind::kChannelOutput, 6, "again") +
                FrameText(FrameKind::kChannelEnd, 6, "it went")) +
        "exec sleep 1000");
  EXPECT_EQ(TakeUntil(0, "of a"), "of a");
  EXPECT_EQ(TakeUntil(1, "again"), "of b again");
  EXPECT_FALSE(streams_[0]->ended());
  while (!streams_[1]->ended()) {
    TakeUntil(1, "never");
  }
  EXPECT_EQ(streams_[1]->HowEnded(), "it went");
  EXPECT_FALSE(streams_[1]->IsLostWith(*streams_[0]));
  char bytes[100];
  const UniqueFd errors = streams_[1]->TakeErrors();
  const ssize_t size = read(errors.get(), bytes, sizeof(bytes));
  EXPECT_EQ(std::string(bytes, static_cast<size_t>(std::max<ssize_t>(size, 0))), "warning of b");
}

TEST_F(RelayLinkTest, ALostConnectionEndsAllItsStreams) {
  Start(Writing(Greeting()) + "exit 255");
  for (size_t host = 0; host < 2; ++host) {
    TakeUntil(host, "never");
    EXPECT_TRUE(streams_[host]->ended());
    EXPECT_EQ(streams_[host]->HowEnded(), "sh to host a exited with code 255");
  }
  EXPECT_TRUE(streams_[0]->IsLostWith(*streams_[1]));
}

class HostileLinkTest : public RelayLinkTest, public testing::WithParamInterface<std::string> {};

TEST_P(HostileLinkTest, EndsAllStreams) {
  Start(Writing(Greeting() + GetParam()) + "exec sleep 1000");
  TakeUntil(1, "never");
  for (const auto& stream : streams_) {
    stream->Take();
    EXPECT_TRUE(stream->ended());
    EXPECT_THAT(stream->HowEnded(), HasSubstr("sh to host a brings no relay's words"));
    EXPECT_EQ(stream->WordsInterest().fd, -1);
  }
}

INSTANTIATE_TEST_SUITE_P(All, HostileLinkTest,
                         testing::Values(FrameText(FrameKind::kChannelOutput, 4, "x"),
                                         FrameText(FrameKind::kChannelOutput, 7, "x"),
                                         FrameText(FrameKind::kChannelOutput, 5,
                                                   std::string(kChannelWindowBytes + 1, 'x')),
                                         FrameText(FrameKind::kChannelRoom, 5, NumberPayload(1)),
                                         FrameText(FrameKind::kChannelRoom, 5, NumberPayload(-1)),
                                         FrameText(FrameKind::kChannelInput, 5, "x"),
                                         FrameText(FrameKind::kOutput, 5, "x"),
                                         Header(UINT32_MAX, FrameKind::kChannelOutput, 5)));

// More than a window waits until the relay has made room.
TEST_F(RelayLinkTest, SendsNoMoreThanThereIsRoomFor) {
  const std::string path = testing::TempDir() + "received";
  Start(Writing(Greeting()) + "exec cat > " + path);
  streams_[1]->Write(std::string(3 * kChannelWindowBytes, 'x'));
  const auto received = [&] {
    std::error_code ignored;
    const auto size = fs::file_size(path, ignored);
    return ignored ? 0 : static_cast<size_t>(size);
  };
  // The window goes in four frames.
  const size_t all = FrameText(FrameKind::kTree, 0, ToText(Tree(5, {"a", "b"}, 2))).size() +
                     kChannelWindowBytes + 4 * sizeof(FrameHeader);
  const uint64_t deadline_ns = MonotonicNs() + tests::kPatienceMs * 1'000'000ULL;
  while ((received() < all || streams_[1]->RoomInterest().fd >= 0) && MonotonicNs() < deadline_ns) {
    streams_[1]->Advance();
    poll(nullptr, 0, 1);
  }
  EXPECT_EQ(streams_[1]->RoomInterest().fd, -1) << "all that may go has gone";
  EXPECT_EQ(received(), all);
}

TEST_F(RelayLinkTest, SharedBytesGoOnce) {
  const std::string path = testing::TempDir() + "received";
  fs::remove(path);
  Start(Writing(Greeting()) + "exec cat > " + path);
  const auto shared = std::make_shared<const std::string>("SHARED" + std::string(1000, 's'));
  for (const auto& stream : streams_) {
    stream->Write("before");
    stream->WriteShared(shared);
    stream->Write("after");
  }
  const std::string all = FrameText(FrameKind::kTree, 5, ToText(Tree(5, {"a", "b"}, 2))) +
                          FrameText(FrameKind::kChannelInput, 5, "before") +
                          FrameText(FrameKind::kShared, 0, *shared) +
                          FrameText(FrameKind::kChannelShared, 5, NumberPayload(0)) +
                          FrameText(FrameKind::kChannelInput, 5, "after") +
                          FrameText(FrameKind::kChannelInput, 6, "before") +
                          FrameText(FrameKind::kChannelShared, 6, NumberPayload(0)) +
                          FrameText(FrameKind::kChannelInput, 6, "after");
  const auto received = [&path] {
    std::ifstream file(path);
    return std::string(std::istreambuf_iterator<char>(file), {});
  };
  const uint64_t deadline_ns = MonotonicNs() + tests::kPatienceMs * 1'000'000ULL;
  while (received().size() < all.size() && MonotonicNs() < deadline_ns) {
    streams_[0]->Advance();
    poll(nullptr, 0, 1);
  }
  EXPECT_EQ(received(), all);
}

// ---- The shape of the tree ----------------------------------------------------------------------

TEST(SplitHostsTest, GroupsDifferByOneAtMost) {
  EXPECT_THAT(SplitHosts(0, 5, 2), ElementsAre(HostGroup{0, 3}, HostGroup{3, 2}));
  EXPECT_THAT(SplitHosts(7, 3, 64), ElementsAre(HostGroup{7, 1}, HostGroup{8, 1}, HostGroup{9, 1}));
  EXPECT_THAT(SplitHosts(1, 4, 1), ElementsAre(HostGroup{1, 4}));
  EXPECT_THAT(SplitHosts(0, 0, 3), testing::IsEmpty());
  const std::vector<HostGroup> many = SplitHosts(0, 10'000, 64);
  EXPECT_THAT(many, SizeIs(64));
  size_t next = 0;
  for (const HostGroup& group : many) {
    EXPECT_EQ(group.first, next);
    EXPECT_THAT(group.count, testing::AnyOf(156U, 157U));
    next += group.count;
  }
  EXPECT_EQ(next, 10'000U);
}

}  // namespace
}  // namespace ferry::tools
