// A network that swallows a connection once it stands; peers that are stopped, and idle ones, are
// no such thing. The kernel tries again in its own time, so these tests take seconds.
#include <linux/filter.h>
#include <poll.h>

#include <cerrno>
#include <cstring>

#include "tests/transports/tcp/tcp_fixture.h"

namespace ferry::transport {
namespace {

constexpr uint64_t kSecondNs = 1'000'000'000;

// From now on nothing comes in by the socket, and its kernel answers nothing. False: we may not.
bool Swallow(int fd) {
  sock_filter drops_all = BPF_STMT(BPF_RET | BPF_K, 0);
  const sock_fprog program{1, &drops_all};
  return setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program)) == 0;
}

class TcpSilenceTest : public TcpTransportTest {
 protected:
  void Stand(uint64_t silence_timeout_ns) {
    TransportOptions options;
    options.post_timeout_ns = 1'000'000 * kSecondNs;
    options.silence_timeout_ns = silence_timeout_ns;
    Connect(options, kBytes);
    Greet();
    begun_ns_ = MonotonicNs() - a_->now_ns;
  }
  // Polls a_ alone, by the real time, and seldom; false: `done` has not come for so long.
  bool Await(uint64_t ns, const std::function<bool()>& done) {
    const uint64_t end_ns = MonotonicNs() + ns;
    while (!done()) {
      if (MonotonicNs() > end_ns) {
        return false;
      }
      poll(nullptr, 0, 1);
      a_->now_ns = MonotonicNs() - begun_ns_;
      a_->Poll();
    }
    return true;
  }

  static constexpr size_t kBytes = 8 << 20;
  uint64_t begun_ns_ = 0;
};

TEST_F(TcpSilenceTest, AConnectionThatIsSwallowedIsLost) {
  constexpr uint64_t kLimitNs = kSecondNs;
  Stand(kLimitNs);
  for (const int fd : ConnectedSockets()) {
    if (!Swallow(fd)) {
      GTEST_SKIP() << "this machine lets us attach no filter to a socket: " << strerror(errno);
    }
  }
  const uint64_t sent_ns = a_->now_ns;
  ASSERT_EQ(a_->Send(b_of_a_, Numbered(1), 1), ErrorCode::kOk);
  EXPECT_TRUE(Await(kSecondNs / 10, [&] { return Ended(1); }));  // the kernel has it
  EXPECT_LE(a_->transport->NextPollNs(a_->now_ns), a_->now_ns + kLimitNs / 4);
  ASSERT_TRUE(Await(30 * kSecondNs, [&] { return !a_->recorder.lost.empty(); }));
  EXPECT_EQ(a_->recorder.lost, (std::vector<std::pair<PeerId, bool>>{{b_of_a_, false}}));
  EXPECT_GE(a_->now_ns - sent_ns, kLimitNs);
  EXPECT_NE(a_->transport->LastError().find("timed out: the peer's system does not answer"),
            std::string::npos);
}

TEST_F(TcpSilenceTest, AStoppedPeerKeepsItsConnection) {
  Stand(kSecondNs / 4);
  ASSERT_EQ(a_->transport->Write(Request(kBytes, 1), Placement::kRemote, a_->now_ns),
            ErrorCode::kOk);
  // Until its kernel has been asked several times whether it has room.
  EXPECT_FALSE(Await(3 * kSecondNs, [&] { return !a_->recorder.lost.empty() || Ended(1); }));
  ASSERT_TRUE(Until([&] { return Ended(1); }));
  EXPECT_EQ(a_->ResultOf(1), ErrorCode::kOk);
}

TEST_F(TcpSilenceTest, AnIdleConnectionIsLeftAlone) {
  Stand(kSecondNs);
  EXPECT_TRUE(
      Await(10 * kSecondNs, [&] { return a_->transport->NextPollNs(a_->now_ns) == UINT64_MAX; }));
  a_->now_ns += 10'000 * kSecondNs;
  ASSERT_EQ(a_->Send(b_of_a_, Numbered(1), 1), ErrorCode::kOk);
  ASSERT_TRUE(Until([&] { return b_->recorder.messages.size() == 1; }));
  EXPECT_TRUE(a_->recorder.lost.empty());
}

}  // namespace
}  // namespace ferry::transport
