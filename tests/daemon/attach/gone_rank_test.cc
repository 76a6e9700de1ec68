// Ranks and launchers that are gone before the daemon has read what they said last. It reads that,
// whatever it was; its answer fails; and it goes on to serve all others.
#include <array>
#include <chrono>
#include <string>

#include "daemon/jobs/job_regions.h"
#include "tests/daemon/attach/attach_server_fixture.h"

namespace ferry::daemon {
namespace {

using attach::Kind;

enum class Stage { kConnected, kAttached, kEntered };

// The last message of a rank, and the stage that the rank had reached.
struct LastWords {
  const char* name;
  Stage stage;
  void (*say)(TestRank& rank);
};

class GoneRankTest : public AttachServerTest, public ::testing::WithParamInterface<LastWords> {
 protected:
  TestRank AtStage() {
    switch (GetParam().stage) {
      case Stage::kConnected:
        return Connected(0);
      case Stage::kAttached:
        return Attached(0);
      case Stage::kEntered:
        break;
    }
    return Entered(0);
  }
  // While the control thread does this it reads nothing: it finds the words of a process that has
  // ended.
  void SayAndGo(TestRank& rank) {
    rank.StopReading();
    loop_->Run([&] {
      GetParam().say(rank);
      rank.HangUp();
    });
  }
  void ExpectService() {
    TestRank next = Rank(1);
    ASSERT_TRUE(next.Enter(socket_path_));
    EXPECT_EQ(next.SendRegion(7, 8192).code(), ErrorCode::kOk);
    next.HangUp();
    EXPECT_TRUE(data_plane_.WaitFor("RankEnded job 1 14"));
    EXPECT_EQ(Connections(), 0U);
  }
};

TEST_P(GoneRankTest, EndsAloneAndItsJobIsTold) {
  const size_t before = OpenDescriptors();
  {
    TestRank rank = AtStage();
    SayAndGo(rank);
    if (GetParam().stage != Stage::kConnected) {
      EXPECT_TRUE(data_plane_.WaitFor("RankEnded job 0 14"));
    }
    ExpectService();
  }
  EXPECT_LE(SettledDescriptors(before), before);
}

// Its device memory is imported by a worker process, which answers after the rank has ended.
TEST_P(GoneRankTest, EndsAloneWhileItsMemoryIsImported) {
  data_plane_.set_import_status({ErrorCode::kWouldBlock, "a worker process does"});
  TestRank rank = AtStage();
  SayAndGo(rank);
  loop_->Run([&] { registry_->regions().OnImport("job", 0, 8, {}); });
  ExpectService();
}

// Its answers find no room, so that they fail while it lives.
class DeafRankTest : public GoneRankTest {};

TEST_P(DeafRankTest, EndsAlone) {
  TestRank rank = AtStage();
  rank.StopReading();
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  pollfd hang_up{rank.socket(), POLLRDHUP, 0};
  while (poll(&hang_up, 1, 0) == 0 && std::chrono::steady_clock::now() < end) {
    GetParam().say(rank);
  }
  EXPECT_NE(hang_up.revents & (POLLRDHUP | POLLHUP), 0);
  rank.HangUp();
  ExpectService();
}

constexpr auto kAttach = [](TestRank& rank) { (void)rank.Ask(rank.AttachRequest()); };
constexpr auto kSegments = [](TestRank& rank) { (void)rank.SendSegments(); };
constexpr auto kRegion = [](TestRank& rank) { (void)rank.SendRegion(8, 8192); };

const auto kAnswered = ::testing::Values(
    LastWords{"Attach", Stage::kConnected, kAttach},
    LastWords{"AttachOfAnotherVersion", Stage::kConnected,
              [](TestRank& rank) {
                attach::AttachRequest request = rank.AttachRequest();
                request.header.layout_version = 77;
                (void)rank.Ask(request);
              }},
    LastWords{"AttachToNoJob", Stage::kConnected,
              [](TestRank& rank) {
                attach::AttachRequest request = rank.AttachRequest();
                request.job_id[0] = 'x';
                (void)rank.Ask(request);
              }},
    LastWords{
        "User", Stage::kConnected,
        [](TestRank& rank) { (void)rank.Ask(attach::UserRequest{rank.Header(Kind::kUser)}); }},
    LastWords{"AttachAndSegments", Stage::kConnected,
              [](TestRank& rank) {
                kAttach(rank);
                kSegments(rank);
              }},
    LastWords{"Segments", Stage::kAttached, kSegments},
    LastWords{"SegmentsAndRegion", Stage::kAttached,
              [](TestRank& rank) {
                kSegments(rank);
                kRegion(rank);
              }},
    LastWords{"SegmentsOfAnotherRank", Stage::kAttached,
              [](TestRank& rank) {
                auto session = rank.SegmentHeader(shm::SegmentKind::kSession);
                session.rank = 9;
                (void)rank.SendSegments(session, rank.SegmentHeader(shm::SegmentKind::kInbox));
              }},
    LastWords{"SegmentsTwice", Stage::kEntered, kSegments},
    LastWords{"Region", Stage::kEntered, kRegion},
    LastWords{"RegionWithoutNumber", Stage::kEntered,
              [](TestRank& rank) { (void)rank.SendRegion(0, 8192); }},
    LastWords{"DeviceRegion", Stage::kEntered, [](TestRank& rank) { rank.OfferDevice(8, 8192); }},
    LastWords{"PeerInbox", Stage::kEntered,
              [](TestRank& rank) { (void)rank.AskPeer(Kind::kPeerInbox, 0); }},
    LastWords{"PeerRegion", Stage::kEntered,
              [](TestRank& rank) { (void)rank.AskPeer(Kind::kPeerRegion, 0, 5); }},
    LastWords{"Garbage", Stage::kEntered,
              [](TestRank& rank) { (void)rank.Ask(std::array<char, 100>{}); }});

const auto kUnanswered =
    ::testing::Values(LastWords{"LinkReply", Stage::kEntered, [](TestRank& rank) {
                                  attach::LinkReply reply{};
                                  reply.header = rank.Header(Kind::kLinkReply);
                                  reply.event = static_cast<uint32_t>(attach::LinkEvent::kReturned);
                                  reply.peer = 3;
                                  (void)rank.Ask(reply);
                                }});

std::string NameOf(const ::testing::TestParamInfo<LastWords>& info) { return info.param.name; }

INSTANTIATE_TEST_SUITE_P(Answered, GoneRankTest, kAnswered, NameOf);
INSTANTIATE_TEST_SUITE_P(Unanswered, GoneRankTest, kUnanswered, NameOf);
INSTANTIATE_TEST_SUITE_P(Answered, DeafRankTest, kAnswered, NameOf);

// Boost.Asio keeps what epoll has said of the stranger's socket, while that is closed and its place
// in Asio's table becomes that of the rank's process, which lives.
TEST_F(AttachServerTest, AStrangersEndIsNotThatOfTheNextRank) {
  TestRank stranger = Connected(0);
  TestRank rank = Connected(1);
  const auto end = std::chrono::steady_clock::now() + tests::kPatience;
  while (Connections() < 2 && std::chrono::steady_clock::now() < end) {
  }
  stranger.StopReading();
  loop_->Run([&] {
    (void)stranger.Ask(std::array<char, 100>{});  // the server will end it in a turn of its own,
    loop_->Post([&] {                             // with what comes now still to be read
      ASSERT_TRUE(SendPacket(rank.socket(), rank.AttachRequest()).ok());
      stranger.HangUp();
    });
  });
  EXPECT_EQ(rank.Read().code(), ErrorCode::kOk);
  EXPECT_EQ(rank.SendSegments().code(), ErrorCode::kOk);
  EXPECT_EQ(Connections(), 1U);
  EXPECT_EQ(data_plane_.Count("RankEnded job 1"), 0U);
}

}  // namespace
}  // namespace ferry::daemon
