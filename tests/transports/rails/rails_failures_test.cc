// Rails that fail, peers that go, and what is refused.
#include <gmock/gmock.h>

#include "tests/transports/rails/rails_fixture.h"

namespace ferry::transport {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST_F(RailsTransportTest, AReadsPostedStripeThatARailCannotCarryGoesByAnother) {
  LearnKeys();
  Read(4 * kStripe, 1);
  ASSERT_THAT(Posted(), ElementsAre(2, 2));
  a->nics[1]->End(ErrorCode::kNodeUnreachable);
  a->nics[1]->End(ErrorCode::kNodeUnreachable);
  a->Poll();
  EXPECT_THAT(Posted(), ElementsAre(2, 0));  // its share is full
  Finish();
  EXPECT_THAT(Posted(), ElementsAre(2, 0));
  EXPECT_THAT(a->results.codes, IsEmpty());
  Finish();
  EXPECT_EQ(a->results.codes[1], ErrorCode::kOk);

  // The rail is left alone, even where it is the nearest, until it answers a probe.
  Read(8, 2, /*rail=*/1);
  EXPECT_THAT(Posted(), ElementsAre(1, 0));
  PassTime(kTimeout / 2);
  Exchange();
  Read(8, 3, /*rail=*/1);
  EXPECT_THAT(Posted(), ElementsAre(1, 1));
}

TEST_F(RailsTransportTest, AReadFailsWhenTheOnlyRailThatIsUpHasFailedAPostedStripe) {
  LearnKeys();
  Read(2 * kStripe, 1);
  ASSERT_THAT(Posted(), ElementsAre(1, 1));
  a->nics[0]->End(ErrorCode::kNodeUnreachable);
  a->nics[1]->End(ErrorCode::kNodeUnreachable);
  a->Poll();
  Finish();
  EXPECT_EQ(a->results.codes[1], ErrorCode::kNodeUnreachable);
}

TEST_F(RailsTransportTest, AReadFailsWhenEachRailHasFailedAPostedStripe) {
  LearnKeys();
  Read(8, 1);
  a->nics[0]->End(ErrorCode::kNodeUnreachable);
  a->Poll();
  ASSERT_THAT(Posted(), ElementsAre(0, 1));
  a->nics[1]->End(ErrorCode::kNodeUnreachable);
  a->Poll();
  EXPECT_EQ(a->results.codes[1], ErrorCode::kNodeUnreachable);
}

TEST_F(RailsTransportTest, AWriteIsNotRepeatedAndEndsWithItsLastPostedStripe) {
  LearnKeys();
  ASSERT_EQ(a->transport->Write(Request(0, 8 * kStripe, 1), Placement::kRemote, 1), ErrorCode::kOk);
  ASSERT_THAT(Posted(), ElementsAre(2, 2));
  a->nics[1]->End(ErrorCode::kNodeUnreachable);
  a->Poll();
  EXPECT_THAT(Posted(), ElementsAre(2, 1));
  EXPECT_THAT(a->results.codes, IsEmpty());  // the memory is still in use
  EXPECT_EQ(a->transport->DeregisterMemory(a->region.handle).code(), ErrorCode::kWouldBlock);
  Finish();
  EXPECT_EQ(a->results.codes[1], ErrorCode::kNodeUnreachable);
  EXPECT_TRUE(a->transport->DeregisterMemory(a->region.handle).ok());
}

TEST_F(RailsTransportTest, WhatTheNicStillHoldsIsNotRepeated) {
  LearnKeys();
  Read(8, 1);
  a->nics[0]->End(ErrorCode::kTimeout);
  a->Poll();
  EXPECT_EQ(a->results.codes[1], ErrorCode::kTimeout);
  EXPECT_THAT(Posted(), ElementsAre(0, 0));
}

TEST_F(RailsTransportTest, FailPeerEndsWhatWaitsIsOnTheWireOrHasNoKeys) {
  LearnKeys();
  Read(9 * kStripe, 1);
  a->nics[0]->room = a->nics[1]->room = 0;
  Read(8, 2);
  RmaRequest unknown = Request(0, 8, 3);
  unknown.key = 77;
  ASSERT_EQ(a->transport->Read(unknown, 1), ErrorCode::kOk);
  a->transport->FailPeer(b_of_a, ErrorCode::kLinkDown);
  EXPECT_EQ(a->transport->Read(Request(0, 8, 4), 1), ErrorCode::kLinkDown);
  a->Poll();
  EXPECT_THAT(a->results.codes,
              ElementsAre(std::pair(1, ErrorCode::kLinkDown), std::pair(2, ErrorCode::kLinkDown),
                          std::pair(3, ErrorCode::kLinkDown)));
  EXPECT_TRUE(a->transport->DeregisterMemory(a->region.handle).ok());
}

TEST_F(RailsTransportTest, RemovePeerCancels) {
  LearnKeys();
  Read(9 * kStripe, 1);
  ASSERT_TRUE(a->transport->RemovePeer(b_of_a).ok());
  EXPECT_EQ(a->transport->Read(Request(0, 8, 2), 1), ErrorCode::kNotFound);
  a->Poll();
  EXPECT_EQ(a->results.codes[1], ErrorCode::kCancelled);
  EXPECT_EQ(a->transport->RemovePeer(b_of_a).code(), ErrorCode::kNotFound);
}

TEST_F(RailsTransportTest, MemoryIsReleasedWhenEveryRailHasLetGo) {
  a->nics[1]->holds_memory = true;
  EXPECT_EQ(a->transport->ReleaseMemory(a->region.handle).status().code(), ErrorCode::kWouldBlock);
  EXPECT_EQ(a->transport->Read(Request(0, 8, 1), 1), ErrorCode::kInvalidBuffer);
  a->nics[1]->holds_memory = false;
  EXPECT_TRUE(a->transport->ReleaseMemory(a->region.handle).ok());
  EXPECT_EQ(a->nics[0]->regions() + a->nics[1]->regions(), 0U);
  EXPECT_EQ(a->transport->ReleaseMemory(a->region.handle).status().code(), ErrorCode::kNotFound);
}

TEST_F(RailsTransportTest, BoundsAreThoseOfOneNic) {
  TransportOptions options;
  options.max_outstanding = 4;
  options.max_outstanding_per_peer = 3;
  Connect(2, 2, options);
  LearnKeys();
  for (uint64_t context = 1; context <= 3; context++) {
    Read(5 * kStripe, context);
  }
  EXPECT_EQ(a->transport->Read(Request(0, 8, 4), 1), ErrorCode::kWouldBlock);
  EXPECT_THAT(Posted(), ElementsAre(6, 6));
}

}  // namespace
}  // namespace ferry::transport
