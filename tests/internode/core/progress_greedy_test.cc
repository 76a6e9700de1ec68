// A node that makes another one keep more than it takes: its link is cut by name, and the others
// notice nothing.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "common/clock.h"
#include "internode/delivery/node_use.h"
#include "internode/delivery/one_sided_state.h"
#include "internode/wire/wire.h"
#include "shm/layout/one_sided_layout.h"
#include "tests/internode/core/forged_packets.h"
#include "tests/internode/core/progress_fixture.h"

namespace ferry::daemon {
namespace {

using progress::PacketKind;

constexpr uint64_t kLong = 256 << 10;

class GreedyNodeTest : public PlaneTest {
 protected:
  // Node 1 stands still, while a process that knows its keys asks in its name.
  void StartGreedy() {
    ASSERT_NO_FATAL_FAILURE(Start({1, 1, 1}));
    ASSERT_EQ(Carry(0, 1), ErrorCode::kOk);
    ASSERT_EQ(Carry(1, 0), ErrorCode::kOk);
    gate(1).stands_still = true;
    transport::TransportOptions options;
    options.provider = PlaneProvider();
    stranger_ = std::move(*transport::OpenTransport(options));
    peer_ = *stranger_->AddPeer(plane(0).FabricAddressFor(0));
  }
  void TearDown() override {
    stranger_.reset();
    PlaneTest::TearDown();
  }
  static progress::WireOneSided Operation(shm::OneSidedOperation operation, uint64_t size_bytes) {
    progress::WireOneSided wire{};
    wire.operation = static_cast<uint8_t>(operation);
    wire.width = 8;
    wire.wants_answer = 1;
    wire.region = kHeapRegion;
    wire.size_bytes = static_cast<uint32_t>(size_bytes);
    return wire;
  }
  // Says it again and again, until `heard`.
  void Say(progress::PacketHeader header, std::span<const std::byte> body, uint64_t most,
           const std::function<bool()>& heard) {
    class Ignore final : public transport::CompletionSink {
      void OnReceive(transport::PeerId, std::span<const std::byte>) override {}
      void OnComplete(uint64_t, ErrorCode) override {}
    } ignore;
    header.body_bytes = static_cast<uint32_t>(body.size());
    const bool is_numbered = header.number != 0;
    uint64_t said = 0;
    EXPECT_TRUE(Eventually([&] {
      stranger_->Poll(ignore, 64, MonotonicNs());
      while (said < most && stranger_->SendMessage(peer_, progress::BytesOf(header), body, 0,
                                                   MonotonicNs()) == ErrorCode::kOk) {
        header.number += is_numbered ? 1 : 0;
        ++said;
      }
      return heard();
    })) << said
        << " said";
  }
  // Until node 0 gives up the link.
  void SayUntilCut(const progress::PacketHeader& header, std::span<const std::byte> body) {
    Say(header, body, 50'000, [this] { return !told_.Get(&Told::lost_links).empty(); });
    EXPECT_EQ(told_.Get(&Told::lost_links), std::vector<uint64_t>{Incarnation(1)});
  }
  void SayTimes(const progress::PacketHeader& header, std::span<const std::byte> body,
                uint64_t times) {
    const uint64_t before = plane(0).Nic().messages_received;
    Say(header, body, times, [&] { return plane(0).Nic().messages_received >= before + times; });
  }
  // It has one link less, and all else as before.
  void ExpectCutByName(const std::string& words) {
    const std::vector<std::string> because = told_.Get(&Told::lost_because);
    ASSERT_FALSE(because.empty());
    EXPECT_NE(because.front().find(words), std::string::npos) << because.front();
    EXPECT_EQ(Carry(0, 2), ErrorCode::kOk);
    EXPECT_EQ(Carry(2, 0), ErrorCode::kOk);
    plane(0).NodeFailed(Incarnation(1), ErrorCode::kLinkDown);
    gate(1).GoOn();
    EXPECT_TRUE(told_.Get(&Told::violations).empty());
    EXPECT_TRUE(told_.Get(&Told::failed_jobs).empty());
  }
  progress::PacketHeader Header(uint64_t number, uint64_t size_bytes = 0) const {
    progress::PacketHeader header = ForgedHeader(1, 0, PacketKind::kOneSided);
    header.source = 1;
    header.destination = 0;
    header.number = number;
    header.size_bytes = size_bytes;
    return header;
  }
  static std::vector<std::byte> BodyOf(const progress::WireOneSided& wire,
                                       const progress::WireRts* rts = nullptr) {
    const auto bytes = progress::BytesOf(wire);
    std::vector<std::byte> body(bytes.begin(), bytes.end());
    if (rts != nullptr) {
      const auto words = progress::BytesOf(*rts);
      body.insert(body.end(), words.begin(), words.end());
    }
    return body;
  }
  std::unique_ptr<transport::Transport> stranger_;
  transport::PeerId peer_{};
};

TEST_F(GreedyNodeTest, ShortGetsWhoseAnswersAreNotTakenCostTheLink) {
  ASSERT_NO_FATAL_FAILURE(StartGreedy());
  const auto body = BodyOf(Operation(shm::OneSidedOperation::kGet, shm::kCellBytes));
  SayUntilCut(Header(1), body);
  ExpectCutByName("asks for more than it takes");
}

TEST_F(GreedyNodeTest, LongGetsThatAreNeverTakenCostTheLink) {
  ASSERT_NO_FATAL_FAILURE(StartGreedy());
  progress::WireOneSided get = Operation(shm::OneSidedOperation::kLongGet, 0);
  get.operand = progress::kFirstOneSidedRts;
  const auto body = BodyOf(get);
  SayUntilCut(Header(0, kLong), body);
  ExpectCutByName("long gets");
}

TEST_F(GreedyNodeTest, LongPutsThatNeverComeCostTheLink) {
  ASSERT_NO_FATAL_FAILURE(StartGreedy());
  progress::WireOneSided put = Operation(shm::OneSidedOperation::kLongPut, 0);
  put.wants_answer = 0;
  const progress::WireRts rts{progress::kFirstOneSidedRts, 1, 1, 0};
  const auto body = BodyOf(put, &rts);
  SayUntilCut(Header(0, kLong), body);
  ExpectCutByName("long puts");
}

// One that asks for what it may, and then stands still, keeps its link.
TEST_F(GreedyNodeTest, AStoppedNodeThatAskedForWhatItMayKeepsItsLink) {
  ASSERT_NO_FATAL_FAILURE(StartGreedy());
  const auto body = BodyOf(Operation(shm::OneSidedOperation::kGet, shm::kCellBytes));
  SayTimes(Header(1), body, progress::kMostBytesAsked / (progress::kAnswerBytes + shm::kCellBytes));
  EXPECT_EQ(Carry(0, 2), ErrorCode::kOk);
  gate(1).GoOn();
  EXPECT_EQ(Carry(0, 1), ErrorCode::kOk);
  EXPECT_EQ(Carry(1, 0), ErrorCode::kOk);
  EXPECT_TRUE(told_.Get(&Told::lost_links).empty());
}

}  // namespace
}  // namespace ferry::daemon
