// Tests of several rails alone; the rest is in tests/conformance.
#include "transports/rails/rails_transport.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <tuple>

#include "tests/transports/rails/rails_fixture.h"
#include "transports/rails/rail_address.h"
#include "transports/rails/rail_keys.h"

namespace ferry::transport {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// ---- Keys

TEST_F(RailsTransportTest, AsksWhatAKeyMeansOnceAndUsesTheKeyOfEachRail) {
  Read(4 * kStripe, 1);
  Read(8, 2);
  EXPECT_THAT(Posted(), ElementsAre(0, 0));
  EXPECT_EQ(a->nics[0]->sent.size(), 1U);
  Exchange();
  ASSERT_FALSE(a->nics[0]->posted.empty());
  const RmaRequest first = a->nics[0]->posted.front().request;
  EXPECT_EQ(first.key, 1000U);  // the rails' own words (scripted_rail.h)
  EXPECT_GE(first.remote_address, 0x10000U);
  EXPECT_NE(first.key, b->region.key);
  while (a->results.codes.size() < 2) {
    Finish();
  }
  EXPECT_EQ(a->results.codes[1], ErrorCode::kOk);
  EXPECT_EQ(a->results.codes[2], ErrorCode::kOk);
  EXPECT_THAT(b->results.messages, IsEmpty());  // only the transport sees the questions

  Read(8, 3);
  EXPECT_THAT(a->nics[0]->sent, IsEmpty());
  EXPECT_EQ(a->nics[0]->posted.size() + a->nics[1]->posted.size(), 1U);
}

// ---- Probes

TEST_F(RailsTransportTest, ARailIsUsedOnceAProbeWasAnswered) {
  Read(1, 1);
  ASSERT_EQ(a->nics[1]->sent.size(), 1U);
  a->nics[1]->sent.clear();  // lost
  Exchange();
  Finish();
  Read(9 * kStripe, 2, /*rail=*/1);
  EXPECT_THAT(Posted(), ElementsAre(2, 0));
  PassTime(kTimeout / 2);
  EXPECT_EQ(a->nics[1]->sent.size(), 1U);  // another one
  Exchange();
  Finish();
  EXPECT_THAT(Posted(), ElementsAre(2, 2));
}

TEST_F(RailsTransportTest, AQuestionThatIsLostIsAskedAgain) {
  Read(8, 1);
  a->nics[0]->sent.clear();
  PassTime(kTimeout / 4);
  EXPECT_EQ(a->nics[0]->sent.size(), 1U);
  Exchange();
  Finish();
  EXPECT_EQ(a->results.codes[1], ErrorCode::kOk);
}

TEST_F(RailsTransportTest, AnAnswerWaitsForRoom) {
  Read(8, 1);
  b->nics[0]->messages_fit = false;
  Exchange();
  EXPECT_THAT(Posted(), ElementsAre(0, 0));
  b->nics[0]->messages_fit = true;
  b->Poll();
  Exchange();
  EXPECT_THAT(Posted(), ElementsAre(1, 0));
}

TEST_F(RailsTransportTest, WithoutAnAnswerTheDeadlinePasses) {
  Read(8, 1);
  for (int step = 0; step < 11; step++) {
    PassTime(kTimeout / 10);
  }
  EXPECT_EQ(a->results.codes[1], ErrorCode::kNodeUnreachable);
  EXPECT_THAT(a->transport->LastError(), HasSubstr("rails"));
  EXPECT_TRUE(a->transport->DeregisterMemory(a->region.handle).ok());
}

TEST_F(RailsTransportTest, MemoryThatIsGoneIsAnInvalidBuffer) {
  ASSERT_TRUE(b->transport->DeregisterMemory(b->region.handle).ok());
  Read(8, 1);
  Exchange();
  EXPECT_EQ(a->results.codes[1], ErrorCode::kInvalidBuffer);
  EXPECT_THAT(a->transport->LastError(), HasSubstr("key"));
}

TEST_F(RailsTransportTest, WhoDoesNotKnowTheCookieLearnsNothing) {
  RailMessage question;
  question.to = {std::byte{1}, std::byte{2}};  // not b's
  question.key = b->region.key;
  std::vector<std::byte> bytes(sizeof(question));
  std::memcpy(bytes.data(), &question, sizeof(question));
  b->nics[0]->Deliver(PeerId{1}, bytes);
  b->Poll();
  EXPECT_THAT(b->nics[0]->sent, IsEmpty());
  EXPECT_THAT(b->results.messages, IsEmpty());
}

// A third node has a cookie of a's of its own, and knows that of b for others.
TEST_F(RailsTransportTest, APeerCannotAnswerForAnother) {
  const auto cookie = [](const RailNode& node, uint64_t guest) {
    return Decode(node.transport->AddressFor(guest))->cookie;
  };
  EXPECT_NE(cookie(*a, 9), cookie(*a, 0));
  RailMessage answer;
  answer.to = cookie(*a, 9);
  answer.from = cookie(*b, 0);
  answer.kind = RailMessage::Kind::kAnswer;
  answer.key = b->region.key;
  answer.rails = 2;
  const auto deliver = [&] {
    std::vector<std::byte> bytes(sizeof(answer));
    std::memcpy(bytes.data(), &answer, sizeof(answer));
    a->nics[0]->Deliver(PeerId{1}, bytes);
    a->Poll();
  };
  Read(8, 1);
  deliver();
  EXPECT_THAT(Posted(), ElementsAre(0, 0));
  answer.from = cookie(*b, 9);
  deliver();
  EXPECT_THAT(Posted(), ElementsAre(0, 0));
  answer.to = cookie(*a, 0);  // b could say so, but not under another's name
  deliver();
  EXPECT_THAT(Posted(), ElementsAre(0, 0));
  answer.from = cookie(*b, 0);
  deliver();
  EXPECT_THAT(Posted(), ElementsAre(1, 0));
}

TEST_F(RailsTransportTest, AttachmentsOfTheFirstRailLandWhereTheUserSays) {
  struct Lands : Results {
    Landing OnHead(PeerId sender, std::span<const std::byte> header, uint64_t bytes) override {
      heads.emplace_back(sender, header.size(), bytes);
      return {to, 4, 77};
    }
    void OnLanded(uint64_t context, ErrorCode code) override { landed.emplace_back(context, code); }
    std::byte* to = nullptr;
    std::vector<std::tuple<PeerId, size_t, uint64_t>> heads;
    std::vector<std::pair<uint64_t, ErrorCode>> landed;
  } lands;
  const std::vector<std::byte> header(10, std::byte{1});
  const std::vector<std::byte> attachment(6, std::byte{2});

  b->nics[0]->DeliverWith(PeerId{1}, header, attachment);
  b->transport->Poll(lands, 1000, 1);
  EXPECT_THAT(lands.heads, ElementsAre(std::tuple(a_of_b, 10, 6)));
  EXPECT_THAT(lands.landed, IsEmpty());
  ASSERT_EQ(lands.messages.size(), 1U);  // it did not want to have it anywhere
  EXPECT_EQ(lands.messages[0].size(), 16U);

  std::vector<std::byte> place(8);
  lands.to = place.data();
  b->nics[0]->DeliverWith(PeerId{1}, header, attachment);
  EXPECT_EQ(b->transport->Poll(lands, 1000, 1), 1);
  EXPECT_THAT(lands.landed, ElementsAre(std::pair(77, ErrorCode::kOk)));
  EXPECT_EQ(place[3], std::byte{2});
  EXPECT_EQ(place[4], std::byte{0});
  EXPECT_EQ(lands.messages.size(), 1U);
  EXPECT_EQ(b->transport->statistics().messages_received, 2U);
  EXPECT_EQ(b->transport->statistics().message_bytes_received, 32U);

  b->nics[1]->DeliverWith(PeerId{1}, header, attachment);  // messages go by the first rail only
  EXPECT_EQ(b->transport->Poll(lands, 1000, 1), 0);
  EXPECT_EQ(lands.heads.size(), 2U);
  EXPECT_EQ(b->transport->statistics().errors, 1U);
}

// ---- Striping

TEST_F(RailsTransportTest, ALongReadGoesByBothRailsInPostedStripes) {
  LearnKeys();
  const Statistics before = a->transport->statistics();
  Read(10 * kStripe + 1, 1);
  EXPECT_THAT(Posted(), ElementsAre(2, 2));
  std::vector<std::pair<uint64_t, uint64_t>> posted_stripes;  // offset, bytes
  while (a->results.codes.empty()) {
    for (ScriptedRail* nic : a->nics) {
      for (; !nic->posted.empty(); nic->End(ErrorCode::kOk)) {
        const RmaRequest& request = nic->posted.front().request;
        posted_stripes.emplace_back(request.remote_address - 0x10000, request.bytes);
        EXPECT_EQ(request.local, a->memory.data() + posted_stripes.back().first);
      }
    }
    a->Poll();
  }
  std::ranges::sort(posted_stripes);
  ASSERT_EQ(posted_stripes.size(), 11U);
  for (uint64_t i = 0; i < 11; i++) {
    EXPECT_EQ(posted_stripes[i], std::pair(i * kStripe, i < 10 ? kStripe : 1));
  }
  EXPECT_EQ(a->results.codes[1], ErrorCode::kOk);
  EXPECT_EQ(a->transport->statistics().reads, before.reads + 1);
  EXPECT_EQ(a->transport->statistics().read_bytes, before.read_bytes + 10 * kStripe + 1);
}

TEST_F(RailsTransportTest, TheFasterRailTakesMore) {
  LearnKeys();
  Read(10 * kStripe, 1);
  int fast = 0;
  for (; a->nics[0]->posted.size() > 0; fast++) {
    a->nics[0]->End(ErrorCode::kOk);
    a->Poll();
  }
  EXPECT_EQ(fast, 8);  // the other still has its first two
  EXPECT_THAT(Posted(), ElementsAre(0, 2));
}

TEST_F(RailsTransportTest, AShortOneGoesByTheNearestRailUnlessThatIsBusier) {
  LearnKeys();
  Read(8, 1, /*rail=*/1);
  EXPECT_THAT(Posted(), ElementsAre(0, 1));
  Read(8, 2, /*rail=*/1);
  EXPECT_THAT(Posted(), ElementsAre(1, 1));
  Read(8, 3, /*rail=*/0);
  EXPECT_THAT(Posted(), ElementsAre(2, 1));
}

TEST_F(RailsTransportTest, WhatNoRailHasRoomForWaits) {
  LearnKeys();
  a->nics[0]->room = 1;
  a->nics[1]->room = 0;
  Read(3 * kStripe, 1);
  EXPECT_THAT(Posted(), ElementsAre(1, 0));
  EXPECT_LT(a->transport->NextPollNs(a->now_ns), UINT64_MAX);
  a->nics[1]->room = 5;
  a->Poll();
  EXPECT_THAT(Posted(), ElementsAre(1, 2));
  Finish();
  EXPECT_EQ(a->results.codes[1], ErrorCode::kOk);
}

TEST_F(RailsTransportTest, APeerWithFewerRailsIsReachedByThose) {
  Connect(3, 2);
  LearnKeys();
  Read(9 * kStripe, 1, /*rail=*/2);
  EXPECT_THAT(Posted(), ElementsAre(2, 2, 0));
  Connect(2, 1);
  LearnKeys();
  Read(9 * kStripe, 1, /*rail=*/1);
  EXPECT_THAT(Posted(), ElementsAre(2, 0));
}

TEST_F(RailsTransportTest, MessagesGoByTheFirstRailInOrder) {
  const std::vector<std::byte> data(8);
  for (uint64_t i = 0; i < 5; i++) {
    ASSERT_EQ(a->transport->SendMessage(b_of_a, data, {}, i, 1), ErrorCode::kOk);
  }
  EXPECT_EQ(a->nics[0]->sent.size(), 5U);
  EXPECT_THAT(a->nics[1]->sent, IsEmpty());
  Exchange();
  EXPECT_EQ(a->results.codes.size(), 5U);
  EXPECT_THAT(b->results.senders, testing::Each(a_of_b));
}

// ---- One NIC by itself

TEST_F(RailsTransportTest, ANicReachesAPeerOnceItHasAnswered) {
  EXPECT_EQ(a->transport->Reaches(b_of_a, 0), ErrorCode::kOk);
  EXPECT_EQ(a->transport->Reaches(b_of_a, 1), ErrorCode::kWouldBlock);
  a->Poll();
  EXPECT_EQ(a->nics[1]->sent.size(), 1U);
  EXPECT_EQ(a->transport->Reaches(b_of_a, 1), ErrorCode::kWouldBlock);
  Exchange();
  EXPECT_EQ(a->transport->Reaches(b_of_a, 1), ErrorCode::kOk);
  EXPECT_EQ(a->transport->PeerOn(b_of_a, 1), PeerId{1});  // scripted_rail.h
  EXPECT_THAT(a->nics[1]->sent, IsEmpty());
}

// It may not know this node yet when it is first asked.
TEST_F(RailsTransportTest, APeerIsAskedOftenAtFirstAndThenNotWaitedFor) {
  a->transport->Reaches(b_of_a, 1);
  int asked = 0;
  while (a->transport->Reaches(b_of_a, 1) == ErrorCode::kWouldBlock) {
    PassTime(kTimeout / 300);
    asked += static_cast<int>(a->nics[1]->sent.size());
    a->nics[1]->sent.clear();  // lost
    ASSERT_LT(a->now_ns, kTimeout);
  }
  EXPECT_GT(asked, 2);
  EXPECT_EQ(a->transport->Reaches(b_of_a, 1), ErrorCode::kNodeUnreachable);
  PassTime(kTimeout);
  Exchange();
  EXPECT_EQ(a->transport->Reaches(b_of_a, 1), ErrorCode::kOk);
}

TEST_F(RailsTransportTest, ADoubtedNicIsLeftAloneUntilItAnswers) {
  LearnKeys();
  a->transport->Doubt(b_of_a, 0);
  EXPECT_EQ(a->transport->Reaches(b_of_a, 0), ErrorCode::kOk) << "messages go by it in any case";
  PassTime(kTimeout);
  a->transport->Doubt(b_of_a, 1);
  EXPECT_EQ(a->transport->Reaches(b_of_a, 1), ErrorCode::kNodeUnreachable);
  Read(8, 1, /*rail=*/1);
  EXPECT_THAT(Posted(), ElementsAre(1, 0));
  PassTime(kTimeout / 2);
  Exchange();
  EXPECT_EQ(a->transport->Reaches(b_of_a, 1), ErrorCode::kOk);
}

TEST_F(RailsTransportTest, ANicThatOneOfTheNodesHasNotReachesNobody) {
  using Sizes = std::pair<size_t, size_t>;
  for (const auto& [of_a, of_b] : {Sizes(3, 2), Sizes(2, 3)}) {
    Connect(of_a, of_b);
    EXPECT_EQ(a->transport->Reaches(b_of_a, 2), ErrorCode::kNotFound);
    EXPECT_EQ(a->transport->PeerOn(b_of_a, 2), kUnknownPeer);
    EXPECT_NE(a->transport->PeerOn(b_of_a, 1), kUnknownPeer);
    a->transport->Doubt(b_of_a, 2);
    a->transport->Doubt(b_of_a, 4'000'000'000);
  }
  EXPECT_EQ(a->transport->PeerOn(PeerId{77}, 0), kUnknownPeer);
  EXPECT_EQ(a->transport->Reaches(PeerId{77}, 0), ErrorCode::kNotFound);
  a->transport->FailPeer(b_of_a, ErrorCode::kLinkDown);
  EXPECT_EQ(a->transport->Reaches(b_of_a, 1), ErrorCode::kLinkDown);
}

TEST_F(RailsTransportTest, WhatIsPostedToANicItselfEndsInThePollOfAll) {
  LearnKeys();
  const Statistics before = a->transport->statistics();
  RmaRequest direct;
  direct.peer = a->transport->PeerOn(b_of_a, 1);
  direct.bytes = 8;
  // As the indices that the rails have of the transport's own operations and stripes, with the bit.
  for (uint64_t i = 0; i < 4; i++) {
    direct.context = kDirectContext | i;
    ASSERT_EQ(a->transport->Rails()[1]->Write(direct, Placement::kLocal, 1), ErrorCode::kOk);
  }
  Read(9 * kStripe, 5);
  EXPECT_THAT(Posted(), ElementsAre(2, 6));
  a->nics[1]->End(ErrorCode::kOk);
  a->nics[1]->End(ErrorCode::kNodeUnreachable);
  EXPECT_EQ(a->transport->Poll(a->results, 1, a->now_ns), 1) << "as many as the budget allows";
  a->Poll();
  EXPECT_THAT(a->results.codes,
              ElementsAre(std::pair(kDirectContext, ErrorCode::kOk),
                          std::pair(kDirectContext | 1, ErrorCode::kNodeUnreachable)));
  EXPECT_EQ(a->transport->Reaches(b_of_a, 1), ErrorCode::kOk) << "what it means, its user knows";
  while (a->results.codes.size() < 5) {
    Finish();
  }
  EXPECT_EQ(a->results.codes[5], ErrorCode::kOk);
  EXPECT_EQ(a->transport->statistics().writes, before.writes);
  EXPECT_EQ(a->transport->statistics().errors, before.errors);
}

// ---- Set-up

TEST_F(RailsTransportTest, EachRailIsThereToLookAt) {
  const std::vector<Transport*> rails = a->transport->Rails();
  ASSERT_EQ(rails.size(), 2U);
  EXPECT_EQ(rails[0]->Describe().domain, "nic0");
  EXPECT_EQ(rails[1]->Describe().domain, "nic1");
}

TEST_F(RailsTransportTest, AnAddressOfANodeWithoutRailsSaysWhatToDo) {
  const Status status = a->transport->AddPeer(std::vector<std::byte>(16)).status();
  EXPECT_EQ(status.code(), ErrorCode::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("fabric_rails"));
}

TEST(RailsSetUpTest, ARailThatCannotBeOpenedIsNamed) {
  TransportOptions options;
  options.rails = {"10.9.9.9"};
  int opened = 0;
  const auto created = CreateRailsTransport(
      options, [&](const TransportOptions& rail) -> StatusOr<std::unique_ptr<Transport>> {
        if (opened++ == 0) {
          return std::unique_ptr<Transport>(std::make_unique<ScriptedRail>("nic"));
        }
        EXPECT_EQ(rail.source_address, "10.9.9.9");
        EXPECT_EQ(rail.provider, "scripted");
        return Status(ErrorCode::kInvalidArgument, "no such address");
      });
  EXPECT_EQ(created.status().code(), ErrorCode::kInvalidArgument);
  EXPECT_THAT(created.status().message(), HasSubstr("rail '10.9.9.9': no such address"));
  options.rails.assign(8, "10.9.9.9");
  const auto too_many = CreateRailsTransport(options, nullptr);
  EXPECT_THAT(too_many.status().message(), HasSubstr("8 further rails"));
}

// ---- Addresses

TEST(RailAddressTest, TakesWhatItMadeAndNothingElse) {
  RailAddress address;
  address.cookie = {std::byte{3}, std::byte{4}};
  address.rails = {std::vector<std::byte>(5, std::byte{1}), std::vector<std::byte>(7)};
  const std::vector<std::byte> bytes = Encode(address);
  const std::optional<RailAddress> decoded = Decode(bytes);
  ASSERT_TRUE(decoded);
  EXPECT_EQ(decoded->cookie, address.cookie);
  EXPECT_EQ(decoded->rails, address.rails);
  for (size_t length = 0; length < bytes.size(); length++) {
    EXPECT_FALSE(Decode({bytes.data(), length})) << length;
  }
  std::vector<std::byte> longer = bytes;
  longer.emplace_back();
  EXPECT_FALSE(Decode(longer));
  address.rails.assign(kMaxRails + 1, std::vector<std::byte>(1));
  EXPECT_FALSE(Decode(Encode(address)));
}

}  // namespace
}  // namespace ferry::transport
