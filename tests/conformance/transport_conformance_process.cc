#include <poll.h>
#include <signal.h>

#include <algorithm>
#include <cstring>

#include "tests/conformance/transport_conformance.h"

namespace ferry::transport {

TEST_P(TransportConformance, WritesToAndReadsFromAnotherProcess) {
  auto process = ConnectProcess(Options(), 2 * kPeerMemoryBytes);
  const std::vector<std::byte> data = Pattern(kPeerMemoryBytes, 13);
  std::copy(data.begin(), data.end(), a_->memory.begin());
  ASSERT_EQ(Write(ToProcess(*process, kPeerMemoryBytes, 1)), ErrorCode::kOk);
  AwaitResults(1);
  RmaRequest read = ToProcess(*process, kPeerMemoryBytes, 2);
  read.local = a_->memory.data() + kPeerMemoryBytes;
  ASSERT_EQ(Read(read), ErrorCode::kOk);
  AwaitResults(2);
  EXPECT_EQ(a_->recorder.ResultOf(1), ErrorCode::kOk);
  EXPECT_EQ(a_->recorder.ResultOf(2), ErrorCode::kOk);
  EXPECT_EQ(std::memcmp(a_->memory.data() + kPeerMemoryBytes, data.data(), data.size()), 0);
}

TEST_P(TransportConformance, APeerKilledDuringWritesEndsEachExactlyOnce) {
  TransportOptions options = Options();
  options.post_timeout_ns = 1'000'000'000;
  auto process = ConnectProcess(options, kPeerMemoryBytes);
  constexpr uint64_t kWrites = 300;  // more than can be outstanding when the peer is killed
  uint64_t accepted = 0;
  uint64_t refused = 0;
  const auto post_all = [&] {
    ErrorCode code = ErrorCode::kOk;
    while (code == ErrorCode::kOk && accepted + refused < kWrites) {
      code = Write(ToProcess(*process, 256 << 10, accepted));
      accepted += code == ErrorCode::kOk ? 1 : 0;
      refused += code == ErrorCode::kNodeUnreachable ? 1 : 0;
    }
  };
  PollUntil([&] {
    post_all();
    return a_->recorder.results.size() >= 10;
  });
  process->Kill(SIGKILL);
  PollUntil([&] {
    post_all();
    return accepted + refused == kWrites && a_->recorder.results.size() == accepted;
  });
  uint64_t failed = 0;
  for (uint64_t context = 0; context < accepted; context++) {
    const ErrorCode result = a_->recorder.ResultOf(context);
    failed += result == ErrorCode::kOk ? 0 : 1;
    EXPECT_TRUE(result == ErrorCode::kOk || result == ErrorCode::kNodeUnreachable ||
                result == ErrorCode::kTimeout)
        << ErrorCodeText(result);
  }
  EXPECT_GT(failed + refused, 0U);
  EXPECT_EQ(a_->transport->statistics().errors, failed + refused);
}

TEST_P(TransportConformance, APeerKilledWhileIdleMeetsTheDeadline) {
  const TransportOptions options = Options();
  auto process = ConnectProcess(options);
  process->Kill(SIGKILL);
  uint64_t now_ns = MonotonicNs();
  const ErrorCode code =
      a_->transport->Write(ToProcess(*process, 64, 1), Placement::kRemote, now_ns);
  if (code != ErrorCode::kOk) {
    EXPECT_EQ(code, ErrorCode::kNodeUnreachable);
    return;
  }
  ExpectMissesItsDeadline(now_ns, options.post_timeout_ns);
}

TEST_P(TransportConformance, SwallowsTheLateEndOfATimedOutOperation) {
  const TransportOptions options = Options();
  auto process = ConnectProcess(options);
  constexpr uint64_t kWrites = 10;
  const auto write_all = [&](uint64_t now_ns) {
    for (uint64_t context = 0; context < kWrites; context++) {
      ASSERT_EQ(a_->transport->Write(ToProcess(*process, 64, context), Placement::kRemote, now_ns),
                ErrorCode::kOk);
    }
  };
  write_all(MonotonicNs());  // whatever writes need stands after these
  AwaitResults(kWrites);
  a_->recorder.results.clear();
  process->Kill(SIGSTOP);
  uint64_t now_ns = MonotonicNs();
  write_all(now_ns);
  PassDeadlines(&now_ns, options.post_timeout_ns);
  for (uint64_t context = 0; context < kWrites; context++) {
    EXPECT_EQ(a_->recorder.ResultOf(context), ErrorCode::kTimeout);
  }
  // Either the NIC still holds them, and the memory with them, or nothing uses it any more.
  // Messages of a transport's own, such as those that try a rail, may be among the abandoned.
  const bool any_held = a_->transport->statistics().abandoned != 0;
  if (any_held) {
    EXPECT_GE(a_->transport->statistics().abandoned, kWrites);
    EXPECT_EQ(a_->transport->DeregisterMemory(a_->region.handle).code(), ErrorCode::kWouldBlock);
  } else {
    EXPECT_TRUE(a_->transport->DeregisterMemory(a_->region.handle).ok());
  }

  process->Kill(SIGCONT);
  ASSERT_EQ(Send(b_of_a_, kPing), ErrorCode::kOk);  // is answered behind what is late
  PollUntil([&] {
    return a_->transport->statistics().abandoned == 0 && a_->recorder.messages.size() == 2;
  });
  EXPECT_EQ(a_->recorder.results.size(), kWrites + 1);
  EXPECT_EQ(a_->recorder.results[0].size(), 1U);
  EXPECT_EQ(a_->recorder.ResultOf(kPing), ErrorCode::kOk);
  EXPECT_EQ(a_->transport->DeregisterMemory(a_->region.handle).ok(), any_held);
}

TEST_P(TransportConformance, SleepsUntilAMessageArrives) {
  const TransportOptions options = Options();
  auto process = ConnectProcess(options);
  if (!a_->transport->capabilities().wait_fd) {
    EXPECT_EQ(a_->transport->WaitFd(), -1);
    EXPECT_FALSE(a_->transport->PrepareToSleep());
    GTEST_SKIP() << GetParam().provider << " can only be polled";
  }
  // The peer sleeps between our messages as we do; every message must wake both. On a busy machine
  // many an answer is there before we can sleep.
  const uint64_t give_up_ns = MonotonicNs() + tests::kPatienceNs;
  uint64_t sleeps = 0;
  for (size_t round = 0; round < 50 || (sleeps == 0 && MonotonicNs() < give_up_ns); round++) {
    a_->recorder.messages.clear();
    const std::vector<std::byte> data = Pattern(64, static_cast<uint32_t>(round));
    ASSERT_EQ(a_->transport->SendMessage(b_of_a_, data, {}, round, MonotonicNs()), ErrorCode::kOk);
    while (a_->recorder.messages.empty() && MonotonicNs() < give_up_ns) {
      if (a_->Poll() == 0 && a_->transport->PrepareToSleep()) {
        pollfd descriptor{a_->transport->WaitFd(), POLLIN, 0};
        ASSERT_EQ(poll(&descriptor, 1, tests::kPatienceMs), 1) << "no wake-up in round " << round;
        sleeps++;
      }
    }
    ASSERT_EQ(a_->recorder.messages.size(), 1U);
    EXPECT_EQ(a_->recorder.messages[0], data);
  }
  EXPECT_GT(sleeps, 0U);
}

TEST_P(TransportConformance, SaysWhenItMustBePolledNext) {
  const TransportOptions options = Options();
  Connect(options);
  EXPECT_EQ(a_->transport->NextPollNs(100), UINT64_MAX);
  ASSERT_EQ(Send(b_of_a_, 1, 100), ErrorCode::kOk);
  EXPECT_LE(a_->transport->NextPollNs(100), 100 + options.post_timeout_ns);
  a_->transport->FailPeer(b_of_a_, ErrorCode::kPeerDied);
  EXPECT_EQ(a_->transport->NextPollNs(100), 100U);
  EXPECT_FALSE(a_->transport->PrepareToSleep());
}

}  // namespace ferry::transport
