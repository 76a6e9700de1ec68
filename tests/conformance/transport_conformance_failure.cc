#include "tests/conformance/transport_conformance.h"

namespace ferry::transport {

TEST_P(TransportConformance, BoundsWhatIsOutstanding) {
  TransportOptions options = Options();
  options.max_outstanding = 8;
  options.max_outstanding_per_peer = 6;
  Connect(options);
  const PeerId other = *a_->transport->AddPeer(a_->transport->Address());
  const auto accepted = [&](PeerId peer, uint64_t context) {
    uint64_t count = 0;
    while (Send(peer, context + count, 0) == ErrorCode::kOk) {
      count++;
    }
    return count;
  };
  EXPECT_EQ(accepted(b_of_a_, 0), 6U);
  EXPECT_EQ(accepted(other, 6), 4U);  // its half, whatever the other one has
  AwaitResults(10);
  EXPECT_EQ(accepted(b_of_a_, 10), 6U);
}

TEST_P(TransportConformance, FailPeerEndsItsOperationsOnly) {
  Connect(Options());
  const PeerId other = *a_->transport->AddPeer(a_->transport->Address());
  for (uint64_t context = 0; context < 20; context++) {
    ASSERT_EQ(Send(b_of_a_, context), ErrorCode::kOk);
  }
  ASSERT_EQ(Send(other, 20), ErrorCode::kOk);
  a_->transport->FailPeer(b_of_a_, ErrorCode::kNodeUnreachable);
  EXPECT_EQ(Send(b_of_a_, 99), ErrorCode::kNodeUnreachable);
  AwaitResults(21);
  for (uint64_t context = 0; context < 20; context++) {
    EXPECT_EQ(a_->recorder.ResultOf(context), ErrorCode::kNodeUnreachable);
  }
  EXPECT_EQ(a_->recorder.ResultOf(20), ErrorCode::kOk);
  PollUntil([&] { return a_->transport->statistics().abandoned == 0; });
  EXPECT_EQ(a_->recorder.results.size(), 21U);
}

TEST_P(TransportConformance, RemovedPeerIsUnknown) {
  Connect(Options());
  ASSERT_EQ(Send(b_of_a_, 1), ErrorCode::kOk);
  ASSERT_TRUE(a_->transport->RemovePeer(b_of_a_).ok());
  EXPECT_EQ(Send(b_of_a_, 2), ErrorCode::kNotFound);
  EXPECT_EQ(a_->transport->RemovePeer(b_of_a_).code(), ErrorCode::kNotFound);
  EXPECT_EQ(AwaitResult(1), ErrorCode::kCancelled);

  // Named anew, it is another peer.
  const PeerId again = *a_->transport->AddPeer(b_->transport->Address());
  EXPECT_NE(again, b_of_a_);
  ASSERT_EQ(Send(again, 3), ErrorCode::kOk);
  AwaitResults(2);
  EXPECT_EQ(a_->recorder.ResultOf(3), ErrorCode::kOk);
}

TEST_P(TransportConformance, APeerWithTwoNamesKeepsTheOther) {
  Connect(Options());
  const PeerId second = *a_->transport->AddPeer(b_->transport->Address());
  ASSERT_EQ(Send(b_of_a_, 1), ErrorCode::kOk);
  AwaitResults(1);
  ASSERT_TRUE(a_->transport->RemovePeer(b_of_a_).ok());
  ASSERT_EQ(Send(second, 2), ErrorCode::kOk);
  EXPECT_EQ(AwaitResult(2), ErrorCode::kOk);
  PollUntil([&] { return b_->recorder.messages.size() == 2; });
}

TEST_P(TransportConformance, APeerThatWasNeverThereMeetsTheDeadline) {
  TransportOptions options = Options();
  Connect(options);
  b_.reset();
  uint64_t now_ns = 1'000'000'000;
  const ErrorCode code = Send(b_of_a_, 1, now_ns);
  if (code != ErrorCode::kOk) {  // some providers know at once
    EXPECT_EQ(code, ErrorCode::kNodeUnreachable);
    return;
  }
  ExpectMissesItsDeadline(now_ns, options.post_timeout_ns);
}

TEST_P(TransportConformance, TimeWithoutPollsIsNotHeldAgainstThePeer) {
  TransportOptions options = Options();
  Connect(options);
  ASSERT_EQ(Send(b_of_a_, 1, 0), ErrorCode::kOk);
  uint64_t now_ns = 10 * options.post_timeout_ns;  // the process was stopped
  const uint64_t give_up_ns = MonotonicNs() + tests::kPatienceNs;
  while (a_->recorder.results.empty() && MonotonicNs() < give_up_ns) {
    a_->Poll(now_ns);
    b_->Poll();
    sched_yield();
  }
  EXPECT_EQ(a_->recorder.ResultOf(1), ErrorCode::kOk);
}

}  // namespace ferry::transport
