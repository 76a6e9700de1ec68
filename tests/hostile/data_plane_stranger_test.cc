// An ordinary user's process at the data plane between two whole daemons, over which a job of
// another user exchanges messages and checks them: it greets without proof, then as a node of jobs
// of its own, and says over TCP that it is one of the daemons.
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "tests/daemon/peers/fake_peer.h"
#include "tests/daemon/test_rank.h"
#include "tests/e2e/command.h"
#include "tests/fuzz/checked_job.h"
#include "tests/fuzz/whole_daemon.h"
#include "tests/transports/tcp/raw_tcp_peer.h"

namespace ferry {
namespace {

using daemon::FakePeer;
using e2e::Eventually;
using transport::RawTcpPeer;
using transport::TcpAddress;
using transport::TcpHello;
using transport::TcpWelcome;

class DataPlaneStrangerTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(nodes_.victim.Exchange(), ""); }

  // Returns the daemon's answer to a stranger that claims that identity.
  static control::HelloReply Greet(const fuzz::WholeDaemon& daemon, const control::NodeIdentity& as,
                                   const std::string& token) {
    const auto stub = control::Peer::NewStub(
        grpc::CreateChannel(daemon.address(), grpc::InsecureChannelCredentials()));
    control::HelloRequest request;
    *request.mutable_from() = as;
    request.set_token(token);
    control::HelloReply reply;
    grpc::ClientContext context;
    const grpc::Status status = stub->Hello(&context, request, &reply);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return reply;
  }
  static std::vector<std::byte> FabricIn(const control::HelloReply& reply) {
    const auto* bytes = reinterpret_cast<const std::byte*>(reply.from().fabric_address().data());
    return {bytes, bytes + reply.from().fabric_address().size()};
  }
  // A job of both, so that the daemon knows the node and tells it its way to the data plane.
  static std::vector<std::byte> EnterJobOf(fuzz::WholeDaemon& daemon, const std::string& job,
                                           const FakePeer& node) {
    control::CreateJobRequest request;
    request.set_job_id(job);
    request.set_secret(daemon::kTestSecret);
    request.set_size(2);
    request.add_node_of_rank(0);
    request.add_node_of_rank(1);
    request.add_node_addresses(daemon.address());
    request.add_node_addresses(node.address());
    const grpc::Status created = daemon.CreateJob(request);
    EXPECT_TRUE(created.ok()) << created.error_message();
    std::vector<std::byte> address;
    EXPECT_TRUE(Eventually([&] {
      address = FabricIn(Greet(daemon, node.identity(), FakePeer::kToken));
      return !address.empty();
    }));
    return address;
  }
  void ExpectThatTheVictimsMessagesPass() {
    for (int i = 0; i < 3; i++) {
      ASSERT_EQ(nodes_.victim.Exchange(), "");
    }
  }

  fuzz::CheckedNodes nodes_{"victim"};
  fuzz::WholeDaemon& here_ = nodes_.here;
  fuzz::WholeDaemon& there_ = nodes_.there;
};

TEST_F(DataPlaneStrangerTest, WithoutProofNobodyLearnsTheWay) {
  for (const auto& [daemon, other] : {std::pair(&here_, &there_), std::pair(&there_, &here_)}) {
    for (const std::string& token : {std::string(), std::string(FakePeer::kToken)}) {
      const control::HelloReply reply = Greet(*daemon, other->identity(), token);
      EXPECT_EQ(reply.data_key(), 0U);
      EXPECT_TRUE(reply.from().fabric_address().empty());
    }
    EXPECT_TRUE(daemon->identity().fabric_address().empty());
  }
  ExpectThatTheVictimsMessagesPass();
}

// It knows where both listen, and a way to each that is its own.
TEST_F(DataPlaneStrangerTest, ANodeOfJobsOfItsOwnIsNobodyElse) {
  FakePeer node([this](control::NodeIdentity* identity) {
    identity->set_provider(here_.identity().provider());
  });
  const std::vector<std::byte> to_here = EnterJobOf(here_, "own-here", node);
  const std::vector<std::byte> to_there = EnterJobOf(there_, "own-there", node);
  const auto here = transport::ParseTcpAddress(to_here);
  const auto there = transport::ParseTcpAddress(to_there);
  ASSERT_TRUE(here && there) << "the daemons have " << here_.identity().provider();
  struct Try {
    uint64_t guest;
    Secret proof;
    bool is_itself;
  };
  for (const Try& attempt :
       {Try{here->guest, here->calls, true}, Try{there->guest, here->calls, false},
        Try{here->guest, there->calls, false}, Try{here->guest, here->answers, false},
        Try{0, here->calls, false}, Try{0, Secret(), false}}) {
    RawTcpPeer stranger(to_here);
    TcpHello hello = stranger.Hello();
    hello.guest = attempt.guest;
    hello.proof = attempt.proof;
    hello.from = *there;  // as the other daemon says of itself
    ASSERT_TRUE(stranger.Send(hello));
    ASSERT_TRUE(Eventually([&] {
      stranger.Drain();
      return stranger.ended() || stranger.received_bytes() >= sizeof(TcpWelcome);
    }));
    EXPECT_EQ(stranger.received_bytes() != 0, attempt.is_itself);
    ExpectThatTheVictimsMessagesPass();
    (void)stranger.Take<TcpWelcome>();
    stranger.Drain();
    EXPECT_EQ(stranger.received_bytes(), 0U) << "what is for another";
    // Messages that are no packets, and a frame of no kind.
    for (int i = 0; i < 64 && attempt.is_itself; i++) {
      ASSERT_TRUE(stranger.SendFrame(transport::FrameKind::kMessage, 0, 0, 0,
                                     std::vector<std::byte>(200, std::byte{9})));
    }
    (void)stranger.SendFrame(transport::FrameKind{77}, 0, 0, 0, {});
    ExpectThatTheVictimsMessagesPass();
  }
}

}  // namespace
}  // namespace ferry
