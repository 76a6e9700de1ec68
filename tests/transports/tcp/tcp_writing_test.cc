// The writing side of a TcpTransport: which frames leave together, and what becomes of long ones.
#include <poll.h>

#include <algorithm>
#include <cstring>
#include <numeric>

#include "tests/transports/tcp/tcp_fixture.h"

namespace ferry::transport {
namespace {

uint64_t SegmentsSent(int fd) {
  tcp_info info{};
  socklen_t bytes = sizeof(info);
  EXPECT_EQ(getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &bytes), 0);
  return info.tcpi_data_segs_out;
}

uint64_t AllSegmentsSent() {
  const std::vector<int> sockets = ConnectedSockets();
  return std::accumulate(sockets.begin(), sockets.end(), uint64_t{0},
                         [](uint64_t sum, int fd) { return sum + SegmentsSent(fd); });
}

TEST_F(TcpTransportTest, TheFirstMessageLeavesAtOnceAndTheNextOnesTogether) {
  Connect();
  Greet();
  const uint64_t before = AllSegmentsSent();
  for (uint64_t i = 0; i < 20; i++) {
    ASSERT_EQ(a_->Send(b_of_a_, Numbered(i), i), ErrorCode::kOk);
  }
  EXPECT_EQ(AllSegmentsSent() - before, 1U);
  b_->Poll();
  EXPECT_EQ(b_->recorder.messages.size(), 1U);
  a_->transport->Flush(a_->now_ns);
  EXPECT_EQ(AllSegmentsSent() - before, 2U);
  ASSERT_TRUE(Until([&] { return b_->recorder.messages.size() == 20; }));
  for (uint64_t i = 0; i < 20; i++) {
    EXPECT_EQ(NumberOf(b_->recorder.messages[i]), i);
  }
  // In the round after Flush one leaves at once again; what does not, before a sleep.
  ASSERT_EQ(a_->Send(b_of_a_, Numbered(20), 20), ErrorCode::kOk);
  ASSERT_EQ(a_->Send(b_of_a_, Numbered(21), 21), ErrorCode::kOk);
  b_->Poll();
  EXPECT_EQ(b_->recorder.messages.size(), 21U);
  EXPECT_FALSE(a_->transport->PrepareToSleep());  // there are ends to report
  b_->Poll();
  EXPECT_EQ(b_->recorder.messages.size(), 22U);
}

TEST_F(TcpTransportTest, SocketsWithLittleRoomCarryEverything) {
  constexpr size_t kMemory = 2 << 20;
  TransportOptions options;
  options.fragment_bytes = 300'001;
  options.attachment_bytes = 512 << 10;
  Connect(options, 4 * kMemory);
  Greet();
  for (const int fd : ConnectedSockets()) {
    const int little = 4096;
    ASSERT_EQ(setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &little, sizeof(little)), 0);
  }
  std::ranges::copy(TcpPattern(kMemory, 1), a_->memory.begin());
  std::ranges::copy(TcpPattern(kMemory, 2), b_->memory.begin() + 3 * kMemory);

  // Everything at once, both ways.
  RmaRequest write = Request(kMemory, 1);
  write.remote_address = kMemory;
  ASSERT_EQ(a_->transport->Write(write, Placement::kRemote, a_->now_ns), ErrorCode::kOk);
  write.context = 2;
  write.remote_address = 0;
  write.bytes = 5000;
  ASSERT_EQ(a_->transport->Write(write, Placement::kLocal, a_->now_ns), ErrorCode::kOk);
  ASSERT_EQ(a_->transport->Read(Request(kMemory, 3, 3 * kMemory), a_->now_ns), ErrorCode::kOk);
  std::vector<std::vector<std::byte>> sent;
  for (uint64_t i = 0; i < 40; i++) {
    sent.push_back(TcpPattern(1 + 397 * i, static_cast<uint32_t>(i)));
    ASSERT_EQ(a_->Send(b_of_a_, sent.back(), 100 + i), ErrorCode::kOk);
    ASSERT_EQ(b_->Send(a_of_b_, sent.back(), 100 + i), ErrorCode::kOk);
  }
  const uint64_t attached = 512 << 10;
  ASSERT_EQ(a_->SendFrom(b_of_a_, a_->memory.data(), attached, a_->region.handle, 4),
            ErrorCode::kOk);
  ASSERT_TRUE(Until([&] {
    return a_->recorder.results.size() == 45 && b_->recorder.messages.size() == 41 &&
           a_->recorder.messages.size() == 40;
  }));
  EXPECT_GT(a_->transport->statistics().eagain, 0U);
  for (const auto& [context, code] : a_->recorder.results) {
    EXPECT_EQ(code, ErrorCode::kOk) << context;
  }
  EXPECT_EQ(std::memcmp(b_->memory.data() + kMemory, a_->memory.data(), kMemory), 0);
  EXPECT_EQ(std::memcmp(b_->memory.data(), a_->memory.data(), 5000), 0);
  EXPECT_EQ(std::memcmp(a_->memory.data() + 3 * kMemory, b_->memory.data() + 3 * kMemory, kMemory),
            0);
  EXPECT_EQ(a_->recorder.messages, sent);
  const std::vector<std::byte> last = b_->recorder.messages.back();
  ASSERT_EQ(last.size(), 40 + attached);
  EXPECT_EQ(std::memcmp(last.data() + 40, a_->memory.data(), attached), 0);
  b_->recorder.messages.pop_back();
  EXPECT_EQ(b_->recorder.messages, sent);
}

TEST_F(TcpTransportTest, SleepsUntilTheSocketTakesMore) {
  constexpr size_t kBytes = 8 << 20;
  Connect(TransportOptions{}, kBytes);
  Greet();
  ASSERT_EQ(a_->transport->Write(Request(kBytes, 1), Placement::kLocal, a_->now_ns),
            ErrorCode::kOk);
  while (a_->Poll() != 0 || !a_->transport->PrepareToSleep()) {
  }
  ASSERT_FALSE(Ended(1));
  pollfd descriptor{a_->transport->WaitFd(), POLLIN, 0};
  EXPECT_EQ(poll(&descriptor, 1, 0), 0);  // b_ has taken nothing yet
  while (poll(&descriptor, 1, 0) == 0) {
    b_->Poll();
  }
  ASSERT_TRUE(Until([&] { return Ended(1); }));
  EXPECT_LE(a_->transport->NextPollNs(5), UINT64_MAX);
}

// A thread that waits for the rest had better not go to sleep.
TEST_F(TcpTransportTest, PartsOfSomethingLongCountAsWork) {
  constexpr size_t kBytes = 8 << 20;
  TransportOptions options;
  options.fragment_bytes = kBytes;
  Connect(options, kBytes);
  Greet();
  ASSERT_EQ(a_->transport->Write(Request(kBytes, 1), Placement::kLocal, a_->now_ns),
            ErrorCode::kOk);
  while (a_->Poll() != 0) {
  }
  EXPECT_GT(b_->Poll(), 0);  // of one frame, the rest of which is still at a_
  int parts = 0;
  ASSERT_TRUE(Until([&] {
    parts += a_->Poll() > 0 && !Ended(1) ? 1 : 0;
    return Ended(1);
  }));
  EXPECT_GT(parts, 0);
}

// ---- Deadlines

TEST_F(TcpTransportTest, AHalfSentFrameTakesItsConnectionAlongAtItsDeadline) {
  constexpr size_t kBytes = 8 << 20;
  TransportOptions options;
  options.fragment_bytes = kBytes;
  Connect(options, kBytes);
  Greet();
  ASSERT_EQ(a_->transport->Write(Request(kBytes, 1), Placement::kRemote, a_->now_ns),
            ErrorCode::kOk);
  ASSERT_EQ(a_->Send(b_of_a_, Numbered(2), 2), ErrorCode::kOk);
  for (int step = 0; step < 12; step++) {
    a_->now_ns += options.post_timeout_ns / 10;
    a_->Poll();
  }
  EXPECT_EQ(a_->ResultOf(1), ErrorCode::kTimeout);
  EXPECT_EQ(a_->ResultOf(2), ErrorCode::kNodeUnreachable);
  EXPECT_EQ(a_->transport->statistics().abandoned, 0U);
  EXPECT_TRUE(a_->transport->DeregisterMemory(a_->region.handle).ok());
  // The next one comes by a connection of its own.
  ASSERT_EQ(a_->Send(b_of_a_, Numbered(3), 3), ErrorCode::kOk);
  ASSERT_TRUE(Until([&] { return b_->recorder.messages.size() == 1; }));
  EXPECT_EQ(NumberOf(b_->recorder.messages[0]), 3U);
}

}  // namespace
}  // namespace ferry::transport
