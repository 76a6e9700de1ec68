// A daemon that is gone at each moment of each exchange over the attach socket: before the rank
// asks, with the question unread, once it has read it, and after a goodbye. The rank is told that
// the daemon has died, or what that said, and never waits.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <string>
#include <thread>
#include <tuple>

#include "shm/segment.h"
#include "tests/client/order_socket.h"

namespace ferry::client {
namespace {

enum class Moment { kBefore, kUnread, kRead, kSaid, kSaidUnread };

const char* NameOf(Moment moment) {
  switch (moment) {
    case Moment::kBefore:
      return "Before";
    case Moment::kUnread:
      return "Unread";
    case Moment::kRead:
      return "Read";
    case Moment::kSaid:
      return "Said";
    case Moment::kSaidUnread:
      return "SaidUnread";
  }
  return "";
}

struct Question {
  const char* name;
  Status (*ask)(AttachConnection& attach, int memory);
};

class LostDaemonTest : public testing::TestWithParam<std::tuple<Moment, Question>> {};

TEST_P(LostDaemonTest, IsNamed) {
  const auto [moment, question] = GetParam();
  OrderSocket socket;
  const StatusOr<UniqueFd> memory = shm::CreateSegment("test", 4096);
  ASSERT_TRUE(memory.ok());
  if (moment == Moment::kBefore) {
    socket.HangUp();
  }
  std::thread daemon([&socket, moment = moment] {
    if (moment == Moment::kBefore) {
      return;
    }
    pollfd asked{socket.daemon_end(), POLLIN, 0};
    EXPECT_EQ(poll(&asked, 1, 20'000), 1);
    if (moment == Moment::kRead || moment == Moment::kSaid) {
      (void)socket.TakePacket();
    }
    if (moment == Moment::kSaid || moment == Moment::kSaidUnread) {
      socket.SayGoodbye(ErrorCode::kAborted, "somebody has ended the job");
    }
    socket.HangUp();
  });
  const Status status = question.ask(socket.attach(), memory->get());
  daemon.join();
  if (moment == Moment::kSaid || moment == Moment::kSaidUnread) {
    EXPECT_EQ(status.code(), ErrorCode::kAborted) << status.message();
    EXPECT_EQ(status.message(), "somebody has ended the job");
  } else {
    EXPECT_EQ(status.code(), ErrorCode::kDaemonDied) << status.message();
  }
}

// The kernel may report the hang-up though a packet that came right before it lies there still. An
// empty packet reads like a hang-up, too, at a moment that a test can choose.
TEST(GoodbyeTest, IsHeardThoughTheHangUpIsSeenFirst) {
  OrderSocket socket;
  EXPECT_EQ(send(socket.daemon_end(), "", 0, 0), 0);
  socket.SayGoodbye(ErrorCode::kAborted, "somebody has ended the job");
  const Status status = socket.attach().PeerInbox(1).status();
  EXPECT_EQ(status.code(), ErrorCode::kAborted) << status.message();
  EXPECT_EQ(status.message(), "somebody has ended the job");
}

// As the watcher asks it, who has not seen that something was left unread.
TEST(GoodbyeTest, IsHeardThoughTheDaemonHasNotReadAll) {
  OrderSocket socket;
  EXPECT_TRUE(socket.attach().SendLinkReply({}).ok());
  socket.SayGoodbye(ErrorCode::kAborted, "somebody has ended the job");
  socket.HangUp();
  const Status status = socket.attach().Goodbye();
  EXPECT_EQ(status.code(), ErrorCode::kAborted) << status.message();
}

INSTANTIATE_TEST_SUITE_P(
    , LostDaemonTest,
    testing::Combine(
        testing::Values(Moment::kBefore, Moment::kUnread, Moment::kRead, Moment::kSaid,
                        Moment::kSaidUnread),
        testing::Values(
            Question{"Attach",
                     [](AttachConnection& attach, int) { return attach.Attach({}).status(); }},
            Question{"User",
                     [](AttachConnection& attach, int) { return attach.IdentifyUser().status(); }},
            Question{"Segments",
                     [](AttachConnection& attach, int memory) {
                       return attach.SendSegments(4096, memory, 4096, memory).status();
                     }},
            Question{"Region", [](AttachConnection& attach,
                                  int memory) { return attach.SendRegion({}, memory).status(); }},
            Question{"PeerInbox",
                     [](AttachConnection& attach, int) { return attach.PeerInbox(1).status(); }},
            Question{"PeerRegion", [](AttachConnection& attach,
                                      int) { return attach.PeerRegion(1, 1).status(); }},
            Question{"CounterPages",
                     [](AttachConnection& attach, int) { return attach.CounterPages(0).status(); }},
            Question{"Join",
                     [](AttachConnection& attach, int) {
                       return attach.Join(0, [](const std::string&) {}).status();
                     }},
            Question{"Peers",
                     [](AttachConnection& attach, int) { return attach.Peers(0).status(); }},
            Question{"Detach", [](AttachConnection& attach, int) { return attach.Detach(); }},
            Question{"Why", [](AttachConnection& attach, int) { return attach.Why().status(); }},
            Question{"Abort",
                     [](AttachConnection& attach, int) { return attach.Abort(1, "it is over"); }},
            Question{"EndRegion",
                     [](AttachConnection& attach, int) { return attach.EndRegion(1, 4096); }},
            Question{"Offer",
                     [](AttachConnection& attach, int) { return attach.OfferPairs(true, {}); }},
            Question{"Withdraw", [](AttachConnection& attach,
                                    int) { return attach.WithdrawPair(true, {}, 0); }},
            Question{"CreateJob",
                     [](AttachConnection& attach, int) { return attach.CreateJob({}); }})),
    [](const auto& info) {
      return std::get<1>(info.param).name + std::string(NameOf(std::get<0>(info.param)));
    });

}  // namespace
}  // namespace ferry::client
