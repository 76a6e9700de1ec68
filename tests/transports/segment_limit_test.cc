#include "transports/ofi/segment_limit.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "common/unique_fd.h"

namespace ferry::transport {
namespace {

class SegmentLimitTest : public testing::Test {
 protected:
  void SetUp() override {
    address_.sin_family = AF_INET;
    address_.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t bytes = sizeof(address_);
    ASSERT_EQ(bind(socket_.get(), Address(), bytes), 0);
    ASSERT_EQ(getsockname(socket_.get(), Address(), &bytes), 0);
  }
  sockaddr* Address() { return reinterpret_cast<sockaddr*>(&address_); }
  std::span<const std::byte> Name() { return std::as_bytes(std::span(&address_, 1)); }
  static int SegmentBytes(const UniqueFd& connection) {
    int segment = 0;
    socklen_t bytes = sizeof(segment);
    EXPECT_EQ(getsockopt(connection.get(), IPPROTO_TCP, TCP_MAXSEG, &segment, &bytes), 0);
    return segment;
  }

  sockaddr_in address_{};
  UniqueFd socket_{socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
};

TEST_F(SegmentLimitTest, HoldsForBothEndsOfAConnection) {
  ASSERT_EQ(listen(socket_.get(), 1), 0);
  ASSERT_TRUE(LimitSegments(Name()));
  const UniqueFd client(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ASSERT_EQ(connect(client.get(), Address(), sizeof(address_)), 0);
  const UniqueFd server(accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC));
  ASSERT_TRUE(server.valid());
  EXPECT_LE(SegmentBytes(client), kMostSegmentBytes);
  EXPECT_LE(SegmentBytes(server), kMostSegmentBytes);
}

TEST_F(SegmentLimitTest, NobodyListensThere) { EXPECT_FALSE(LimitSegments(Name())); }

}  // namespace
}  // namespace ferry::transport
