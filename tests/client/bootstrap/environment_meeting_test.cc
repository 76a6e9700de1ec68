// Ranks that meet by what their environment tells them: in good order, with every mistake that a
// rank can make, and among strangers.
#include "client/bootstrap/environment_meeting.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "common/net_address.h"
#include "common/unique_fd.h"
#include "tests/support/eventually.h"
#include "tests/support/patience.h"

namespace ferry::client {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr uint64_t kNoHurryMs = tests::kPatienceMs;
constexpr char kSecret[] = "0123456789abcdef0123456789abcdef";

MeetingPlace PlaceOf(uint32_t rank, uint32_t size, bool is_local) {
  static const std::string base = "ferry-test-" + std::to_string(getpid());
  static std::atomic<int> next{0};
  MeetingPlace place;
  place.rank = rank;
  place.size = size;
  place.address = {"127.0.0.1", 0};
  place.calls_locally = is_local;
  place.serves_port = !is_local;
  place.secret = is_local ? "" : kSecret;
  place.local_name = base + "-" + std::to_string(next++);
  place.job = "run 1";
  return place;
}

// Rank 0 of a meeting, which listens at a free port or at a local name of its own.
class RankZero {
 public:
  explicit RankZero(uint32_t size, bool is_local = false, uint64_t stranger_ms = kNoHurryMs)
      : place(PlaceOf(0, size, is_local)), server(place, stranger_ms) {
    const Status status = server.Listen();
    EXPECT_TRUE(status.ok()) << status.message();
    place.address.port = server.port();
  }

  // Where another rank is to call.
  MeetingPlace For(uint32_t rank) const {
    MeetingPlace other = place;
    other.rank = rank;
    return other;
  }

  MeetingPlace place;
  MeetingServer server;
};

std::unique_ptr<EnvironmentMeeting> OpenAt(const MeetingPlace& place,
                                           uint64_t answer_ms = kNoHurryMs) {
  auto meeting = EnvironmentMeeting::Open(place, answer_ms);
  EXPECT_TRUE(meeting.ok()) << meeting.status().message();
  return std::move(*meeting);
}

// A rank other than 0, on a thread of its own: it meets, and does what follows.
class OtherRank {
 public:
  using Then = std::function<Status(EnvironmentMeeting*)>;
  explicit OtherRank(const MeetingPlace& place, Then then = nullptr)
      : meeting_(OpenAt(place)), thread_([this, then] {
          outcome_ = meeting_->Meet();
          if (outcome_.ok() && then != nullptr) {
            outcome_ = then(meeting_.get());
          }
        }) {}
  ~OtherRank() {
    if (thread_.joinable()) {
      thread_.join();
    }
  }
  const Status& Join() {
    thread_.join();
    return outcome_;
  }
  std::string Missing() const { return meeting_->Missing(); }

 private:
  const std::unique_ptr<EnvironmentMeeting> meeting_;
  Status outcome_;
  std::thread thread_;
};

// Does as rank 0 while the others meet (FindRanksOfNode): one fence.
Status MeetAsZero(MeetingServer* server) {
  MeetingTable table;
  return server->Fence({{"ferry.host", "another"}}, &table);
}

UniqueFd Connect(const MeetingPlace& place) {
  UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(place.address.port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  return fd;
}

void Say(const UniqueFd& fd, const std::string& bytes) {
  EXPECT_EQ(send(fd.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
            static_cast<ssize_t>(bytes.size()));
}

// All that comes until the other end closes the connection, or `most` bytes.
std::string HearAll(const UniqueFd& fd, size_t most = SIZE_MAX) {
  std::string heard;
  char byte = 0;
  while (heard.size() < most && recv(fd.get(), &byte, 1, 0) == 1) {
    heard += byte;
  }
  return heard;
}

// ---- In good order ------------------------------------------------------------------------------

class TransportTest : public testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(, TransportTest, testing::Bool(),
                         [](const auto& info) { return info.param ? "Locally" : "ByPort"; });

TEST_P(TransportTest, AllRanksHearWhatEachHasSaid) {
  constexpr uint32_t kSize = 5;
  RankZero zero(kSize, GetParam());
  const auto talk = [](EnvironmentMeeting* meeting) -> Status {
    EXPECT_THAT(meeting->local_ranks(), ElementsAre(1, 2, 3, 4));  // rank 0 says another node
    for (int round = 0; round < 3; ++round) {
      const std::string words(round == 2 ? 300'000 : 1, static_cast<char>('a' + round));
      FERRY_RETURN_IF_ERROR(meeting->Put("words", words + std::to_string(meeting->rank())));
      FERRY_RETURN_IF_ERROR(meeting->Fence());
      for (uint32_t rank = 0; rank < kSize; ++rank) {
        const StatusOr<std::string> heard = meeting->Get(rank, "words");
        FERRY_RETURN_IF_ERROR(heard.status());
        EXPECT_EQ(*heard, words + std::to_string(rank));
      }
      EXPECT_EQ(meeting->Get(1, "nothing").status().code(), ErrorCode::kNotFound);
    }
    return {};
  };
  std::vector<std::unique_ptr<OtherRank>> ranks;
  for (uint32_t rank = 1; rank < kSize; ++rank) {
    ranks.push_back(std::make_unique<OtherRank>(zero.For(rank), talk));
  }
  EXPECT_TRUE(MeetAsZero(&zero.server).ok());
  for (int round = 0; round < 3; ++round) {
    MeetingTable table;
    const std::string words(round == 2 ? 300'000 : 1, static_cast<char>('a' + round));
    const Status status = zero.server.Fence({{"words", words + "0"}}, &table);
    EXPECT_TRUE(status.ok()) << status.message();
    EXPECT_EQ((table[{4, "words"}]), words + "4");
  }
  for (const auto& rank : ranks) {
    EXPECT_TRUE(rank->Join().ok());
  }
}

TEST(EnvironmentMeetingTest, OneRankMeetsNobodyAndListensNowhere) {
  const MeetingPlace place = PlaceOf(0, 1, true);
  const auto meeting = OpenAt(place);
  EXPECT_EQ(CallLocally(place.local_name).status().code(), ErrorCode::kNotFound);
  EXPECT_TRUE(meeting->Meet().ok());
  EXPECT_THAT(meeting->local_ranks(), ElementsAre(0));
  EXPECT_TRUE(meeting->Put("name", "words").ok());
  EXPECT_TRUE(meeting->Fence().ok());
  EXPECT_EQ(*meeting->Get(0, "name"), "words");
}

TEST_P(TransportTest, ARankZeroThatComesLateIsWaitedForAndNamed) {
  MeetingPlace place;
  {
    const RankZero before(2, GetParam());  // finds a free port
    place = before.place;
  }
  MeetingPlace other = place;
  other.rank = 1;
  OtherRank rank(other);
  EXPECT_TRUE(tests::Eventually([&] {
    return rank.Missing().find("rank 0, which the others call at ") != std::string::npos;
  })) << rank.Missing();
  MeetingServer server(place, kNoHurryMs);
  ASSERT_TRUE(server.Listen().ok());
  EXPECT_TRUE(MeetAsZero(&server).ok());
  EXPECT_TRUE(rank.Join().ok());
  EXPECT_EQ(rank.Missing(), "");  // rank 0 says the rest
}

TEST(EnvironmentMeetingTest, RankZeroNamesTheRanksThatAreMissing) {
  RankZero zero(5);
  EXPECT_EQ(zero.server.Missing(), "missing: ranks 1 to 4");
  std::thread serving([&] { EXPECT_TRUE(MeetAsZero(&zero.server).ok()); });
  OtherRank two(zero.For(2));
  EXPECT_TRUE(tests::Eventually([&] { return zero.server.Missing() == "missing: ranks 1, 3 and 4"; }))
      << zero.server.Missing();
  OtherRank others[] = {OtherRank(zero.For(1)), OtherRank(zero.For(3)), OtherRank(zero.For(4))};
  serving.join();
}

// While rank 0 is not there: the first rank of a node speaks, as it believes.
TEST(EnvironmentMeetingTest, OneRankOfEachNodeSaysThatRankZeroIsNotThere) {
  const auto speaks = [](uint32_t rank, uint32_t local_rank) {
    MeetingPlace place = PlaceOf(rank, 8, true);
    place.local_rank = local_rank;
    return OpenAt(place)->local_ranks().front() == rank;
  };
  EXPECT_TRUE(speaks(0, 0));
  EXPECT_TRUE(speaks(1, 1));  // rank 0 would, and is not there
  EXPECT_FALSE(speaks(2, 2));
  EXPECT_TRUE(speaks(4, 0));
  EXPECT_FALSE(speaks(5, 1));
  EXPECT_TRUE(speaks(5, 0));  // not told
}

TEST(RankNamesTest, AreShort) {
  EXPECT_EQ(NameRanks({7}), "rank 7");
  EXPECT_EQ(NameRanks({0, 1}), "ranks 0 and 1");
  EXPECT_EQ(NameRanks({0, 1, 2, 3, 9}), "ranks 0 to 3 and 9");
  std::vector<uint32_t> even;
  for (uint32_t rank = 0; rank < 1000; rank += 2) {
    even.push_back(rank);
  }
  EXPECT_EQ(NameRanks(even), "ranks 0, 2, 4, 6, 8, 10, 12, 14 and 492 more");
}

// ---- Ranks that are wrong -----------------------------------------------------------------------

// Rank 0 of three, rank 1, and a rank that is wrong; all must end in the same words.
void ExpectAllFail(const std::function<void(MeetingPlace*)>& spoil, ErrorCode code,
                   const std::vector<std::string>& words) {
  for (const bool is_local : {true, false}) {
    RankZero zero(3, is_local);
    MeetingPlace wrong = zero.For(2);
    spoil(&wrong);
    OtherRank first(zero.For(1));
    OtherRank second(wrong);
    const Status at_zero = MeetAsZero(&zero.server);
    EXPECT_EQ(at_zero.code(), code) << at_zero.message();
    for (const std::string& word : words) {
      EXPECT_THAT(at_zero.message(), HasSubstr(word));
    }
    EXPECT_EQ(first.Join().message(), at_zero.message());
    EXPECT_EQ(second.Join().message(), at_zero.message());
  }
}

TEST(WrongRankTest, OneOfAnotherSizeEndsAll) {
  ExpectAllFail([](MeetingPlace* place) { place->size = 8; }, ErrorCode::kConfiguration,
                {"rank 2 (pid " + std::to_string(getpid()), "that there are 8 ranks (WORLD_SIZE)",
                 "rank 0 (pid ", " says 3"});
}

TEST(WrongRankTest, TwoOfOneNumberEndAll) {
  ExpectAllFail([](MeetingPlace* place) { place->rank = 1; }, ErrorCode::kConfiguration,
                {"two processes say that they are rank 1 (RANK): pid ", "MASTER_PORT"});
}

TEST(WrongRankTest, OneBeyondTheLastEndsAll) {
  ExpectAllFail([](MeetingPlace* place) { place->rank = 3; }, ErrorCode::kConfiguration,
                {"rank 3 (pid ", "is none of the 3 ranks from 0 on"});
}

TEST(WrongRankTest, OneOfAnotherRunIsSentAwayAlone) {
  RankZero zero(2);
  MeetingPlace wrong = zero.For(1);
  wrong.job = "run 2";
  std::thread serving([&] { EXPECT_TRUE(MeetAsZero(&zero.server).ok()); });
  OtherRank stray(wrong);
  const Status status = stray.Join();
  EXPECT_EQ(status.code(), ErrorCode::kConfiguration);
  EXPECT_THAT(status.message(), AllOf(HasSubstr("\"run 2\" (TORCHELASTIC_RUN_ID)"),
                                      HasSubstr("\"run 1\""), HasSubstr("MASTER_PORT")));
  OtherRank right(zero.For(1));
  EXPECT_TRUE(right.Join().ok());
  serving.join();
}

TEST(WrongRankTest, OneWithAnotherSecretIsRefusedAndNamed) {
  RankZero zero(2);
  MeetingPlace wrong = zero.For(1);
  wrong.secret = "another secret of some length";
  std::thread serving([&] { EXPECT_TRUE(MeetAsZero(&zero.server).ok()); });
  OtherRank stray(wrong);
  const Status status = stray.Join();
  EXPECT_EQ(status.code(), ErrorCode::kPermissionDenied);
  EXPECT_THAT(status.message(), AllOf(HasSubstr("another secret"), HasSubstr("FERRY_JOB_SECRET")));
  EXPECT_TRUE(tests::Eventually([&] {
    return zero.server.Missing() ==
           "missing: rank 1; callers refused for another secret: 1, the last one from 127.0.0.1";
  })) << zero.server.Missing();
  OtherRank right(zero.For(1));
  EXPECT_TRUE(right.Join().ok());
  serving.join();
}

// Only this user's processes can call there, so it is one of the job's ranks.
TEST(WrongRankTest, OnOneNodeAnotherSecretEndsAll) {
  RankZero zero(3, /*is_local=*/true);
  MeetingPlace wrong = zero.For(2);
  wrong.secret = kSecret;
  OtherRank first(zero.For(1));
  OtherRank second(wrong);
  const Status at_zero = MeetAsZero(&zero.server);
  EXPECT_EQ(at_zero.code(), ErrorCode::kPermissionDenied);
  EXPECT_THAT(at_zero.message(), HasSubstr("different secrets (FERRY_JOB_SECRET)"));
  EXPECT_EQ(first.Join().message(), at_zero.message());
  EXPECT_EQ(second.Join().code(), ErrorCode::kPermissionDenied);
}

TEST(WrongRankTest, TwoJobsAtOnePortAreToldApart) {
  for (const bool is_local : {true, false}) {
    const RankZero zero(2, is_local);
    MeetingPlace place = zero.place;
    if (!is_local) {
      place.local_name += "-other";  // of another user, or in a container
    }
    const Status status = EnvironmentMeeting::Open(place, kNoHurryMs).status();
    EXPECT_EQ(status.code(), ErrorCode::kAlreadyExists);
    EXPECT_THAT(status.message(), AllOf(HasSubstr("MASTER_PORT"), HasSubstr("FERRY_MEETING_PORT")));
  }
}

// ---- Ends, at each step -------------------------------------------------------------------------

TEST_P(TransportTest, ARankThatEndsBeforeAllHaveComeEndsTheOthers) {
  RankZero zero(3, GetParam());
  OtherRank first(zero.For(1));
  std::thread second([&] {
    StatusOr<UniqueFd> connection =
        GetParam() ? CallLocally(zero.place.local_name) : StatusOr<UniqueFd>(Connect(zero.place));
    ASSERT_TRUE(connection.ok());
    MeetingStream stream(std::move(*connection), MeetingStream::Side::kCaller,
                         KeyOfText(zero.place.secret), *DrawNumber());
    stream.Put(MeetingHello{zero.place.job, 3, 2, "pid 4711 on n7"}.Write());
    while (stream.Turn().status().code() == ErrorCode::kWouldBlock) {
      pollfd waiting{stream.fd(), stream.events(), 0};
      poll(&waiting, 1, -1);
    }
  });
  const Status at_zero = MeetAsZero(&zero.server);
  second.join();
  EXPECT_EQ(at_zero.code(), ErrorCode::kPeerDied);
  EXPECT_THAT(at_zero.message(), HasSubstr("rank 2 (pid 4711 on n7) has ended while"));
  EXPECT_EQ(first.Join().message(), at_zero.message());
}

TEST_P(TransportTest, ARankThatEndsBetweenFencesEndsTheOthers) {
  RankZero zero(3, GetParam());
  OtherRank first(zero.For(1), [](EnvironmentMeeting* meeting) { return meeting->Fence(); });
  auto second = std::make_unique<OtherRank>(zero.For(2));
  EXPECT_TRUE(MeetAsZero(&zero.server).ok());
  EXPECT_TRUE(second->Join().ok());
  second.reset();
  const Status at_zero = MeetAsZero(&zero.server);
  EXPECT_EQ(at_zero.code(), ErrorCode::kPeerDied);
  EXPECT_THAT(at_zero.message(), HasSubstr("rank 2 (pid "));
  EXPECT_EQ(first.Join().message(), at_zero.message());
}

TEST_P(TransportTest, ARankZeroThatEndsEndsTheOthers) {
  auto zero = std::make_unique<RankZero>(2, GetParam());
  OtherRank first(zero->For(1), [](EnvironmentMeeting* meeting) { return meeting->Fence(); });
  EXPECT_TRUE(MeetAsZero(&zero->server).ok());
  zero.reset();
  const Status status = first.Join();
  EXPECT_EQ(status.code(), ErrorCode::kPeerDied);
  EXPECT_THAT(status.message(), HasSubstr("rank 0, which the others have called at "));
}

// ---- Strangers ----------------------------------------------------------------------------------

TEST(StrangersTest, HearNothingAndHoldNothingUp) {
  RankZero zero(2);
  std::thread serving([&] { EXPECT_TRUE(MeetAsZero(&zero.server).ok()); });
  std::vector<UniqueFd> silent;
  for (int i = 0; i < 200; ++i) {
    silent.push_back(Connect(zero.place));
  }
  const UniqueFd web = Connect(zero.place);
  Say(web, "GET / HTTP/1.1\r\n\r\n");
  EXPECT_THAT(HearAll(web), IsEmpty());
  const UniqueFd curious = Connect(zero.place);
  Say(curious, "FerryMt1" + std::string(16, 'n'));
  const std::string greeting = HearAll(curious, 24);
  EXPECT_EQ(greeting.substr(0, 8), "FerryMt1");
  Say(curious, std::string("\x18\0\0\0", 4) + std::string(24, 'x'));
  EXPECT_EQ(HearAll(curious), std::string(4, '\0'));  // refused, and no more
  const UniqueFd greedy = Connect(zero.place);
  Say(greedy, "FerryMt1" + std::string(16, 'n') + "\xff\xff\xff\x7f");
  EXPECT_EQ(HearAll(greedy).size(), 24U);
  OtherRank right(zero.For(1));
  EXPECT_TRUE(right.Join().ok());
  serving.join();
}

TEST(StrangersTest, AreDroppedAfterAWhile) {
  RankZero zero(2, /*is_local=*/false, /*stranger_ms=*/20);
  std::thread serving([&] { EXPECT_TRUE(MeetAsZero(&zero.server).ok()); });
  const UniqueFd silent = Connect(zero.place);
  EXPECT_THAT(HearAll(silent), IsEmpty());  // returns once it is closed
  OtherRank right(zero.For(1));
  EXPECT_TRUE(right.Join().ok());
  serving.join();
}

TEST(StrangersTest, WhatARecordedRankHasSaidAdmitsNobody) {
  RankZero zero(2);
  // Between the rank and rank 0, a process that records.
  StatusOr<UniqueFd> listener = daemon::ListenTcp({"127.0.0.1", 0}, "port");
  ASSERT_TRUE(listener.ok());
  MeetingPlace place = zero.For(1);
  place.address.port = daemon::PortOf(listener->get());
  std::thread serving([&] { EXPECT_EQ(MeetAsZero(&zero.server).code(), ErrorCode::kPeerDied); });
  OtherRank rank(place);
  pollfd waiting{listener->get(), POLLIN, 0};
  ASSERT_EQ(poll(&waiting, 1, tests::kPatienceMs), 1);
  UniqueFd caller(accept4(listener->get(), nullptr, nullptr, SOCK_CLOEXEC));
  UniqueFd server = Connect(zero.place);
  const std::string number = HearAll(caller, 24);
  Say(server, number);
  Say(caller, HearAll(server, 24));
  const std::string head = HearAll(caller, 4);
  const std::string hello = HearAll(caller, static_cast<unsigned char>(head[0]));
  EXPECT_THAT(hello, AllOf(Not(HasSubstr("run 1")), Not(HasSubstr("pid "))));  // encrypted
  const UniqueFd again = Connect(zero.place);
  Say(again, number + head + hello);
  EXPECT_EQ(HearAll(again).substr(24), std::string(4, '\0'));
  Say(server, head + hello);  // this one is what it says
  const std::string welcome = HearAll(server, 4);
  Say(caller, welcome + HearAll(server, static_cast<unsigned char>(welcome[0])));
  EXPECT_THAT(HearAll(caller, 1), Not(IsEmpty()));  // the rank goes on
  server.Reset();
  caller.Reset();
  serving.join();
  EXPECT_EQ(rank.Join().code(), ErrorCode::kPeerDied);
}

// Calls a process that listens where rank 0 should.
Status MeetWith(const std::function<void(UniqueFd)>& answer, uint64_t answer_ms) {
  StatusOr<UniqueFd> listener = daemon::ListenTcp({"127.0.0.1", 0}, "port");
  EXPECT_TRUE(listener.ok());
  MeetingPlace place = PlaceOf(1, 2, false);
  place.address.port = daemon::PortOf(listener->get());
  std::atomic<bool> is_over{false};
  std::thread serving([&] {
    pollfd waiting{listener->get(), POLLIN, 0};
    while (!is_over) {
      if (poll(&waiting, 1, 10) == 1) {
        answer(UniqueFd(accept4(listener->get(), nullptr, nullptr, SOCK_CLOEXEC)));
      }
    }
  });
  const Status status = OpenAt(place, answer_ms)->Meet();
  is_over = true;
  serving.join();
  return status;
}

TEST(FalseRankZeroTest, OneThatSaysNothingIsNamed) {
  std::vector<UniqueFd> held;
  const Status status = MeetWith([&](UniqueFd fd) { held.push_back(std::move(fd)); }, 50);
  EXPECT_EQ(status.code(), ErrorCode::kTimeout);
  EXPECT_THAT(status.message(), AllOf(HasSubstr("127.0.0.1:"), HasSubstr("not answered for 50 ms"),
                                      HasSubstr("FERRY_MEETING_PORT")));
}

TEST(FalseRankZeroTest, OneThatHangsUpIsNamed) {
  const Status status = MeetWith([](UniqueFd) {}, 50);
  EXPECT_EQ(status.code(), ErrorCode::kCorrupt);
  EXPECT_THAT(status.message(), HasSubstr("hangs up"));
}

TEST(FalseRankZeroTest, OneThatSpeaksSomethingElseIsNamed) {
  std::vector<UniqueFd> held;
  const Status status = MeetWith(
      [&](UniqueFd fd) {
        Say(fd, "HTTP/1.1 400 Bad Request\r\n\r\n");
        held.push_back(std::move(fd));
      },
      kNoHurryMs);
  EXPECT_EQ(status.code(), ErrorCode::kCorrupt);
  EXPECT_THAT(status.message(), HasSubstr("does not speak Ferry's protocol"));
}

// It knows the word, and not the secret: it hears nothing but what it cannot read.
TEST(FalseRankZeroTest, OneThatDoesNotKnowTheSecretIsNamed) {
  std::vector<UniqueFd> held;
  const Status status = MeetWith(
      [&](UniqueFd fd) {
        (void)HearAll(fd, 24);
        Say(fd, "FerryMt1" + std::string(16, 's') + std::string("\x11\0\0\0", 4) +
                    std::string(17, 'x'));
        held.push_back(std::move(fd));
      },
      kNoHurryMs);
  EXPECT_EQ(status.code(), ErrorCode::kPermissionDenied);
  EXPECT_THAT(status.message(), HasSubstr("FERRY_JOB_SECRET"));
}

TEST(FalseRankZeroTest, AHostThatDoesNotExistIsNamed) {
  MeetingPlace place = PlaceOf(1, 2, false);
  place.address = {"no-such-host.invalid", 29501};
  const Status status = OpenAt(place, 50)->Meet();
  EXPECT_EQ(status.code(), ErrorCode::kNodeUnreachable);
  EXPECT_THAT(status.message(), HasSubstr("no-such-host.invalid:29501 (MASTER_ADDR"));
}

TEST(FalseRankZeroTest, AnotherUsersSocketIsNotSpokenTo) {
  if (geteuid() != 0) {
    GTEST_SKIP() << "becomes another user, and this is uid " << geteuid();
  }
  const MeetingPlace place = PlaceOf(1, 2, true);
  std::array<int, 2> ready{};
  ASSERT_EQ(pipe(ready.data()), 0);
  const pid_t child = fork();
  if (child == 0) {
    const bool is_other = setuid(65534) == 0;
    const StatusOr<UniqueFd> listener = ListenLocally(place.local_name);
    const char byte = is_other && listener.ok() ? 'y' : 'n';
    (void)!write(ready[1], &byte, 1);
    pause();
    _exit(0);
  }
  char byte = 0;
  EXPECT_EQ(read(ready[0], &byte, 1), 1);
  if (byte == 'y') {
    const Status status = OpenAt(place)->Meet();
    EXPECT_EQ(status.code(), ErrorCode::kPermissionDenied);
    EXPECT_THAT(status.message(), HasSubstr("user 65534 listens there"));
  }
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  close(ready[0]);
  close(ready[1]);
  if (byte != 'y') {
    GTEST_SKIP() << "there is no user 65534 here";
  }
}

// ---- Processes that a rank starts ---------------------------------------------------------------

// Opens the meeting in a process that this one forks, or that such a process forks, and returns its
// error; empty: none.
std::string ErrorInDescendant(const MeetingPlace& place, int generations) {
  std::array<int, 2> words{};
  EXPECT_EQ(pipe(words.data()), 0);
  const pid_t child = fork();
  if (child == 0) {
    close(words[0]);
    if (generations > 1) {
      const std::string said = ErrorInDescendant(place, generations - 1);
      (void)!write(words[1], said.data(), said.size());
      _exit(0);
    }
    const auto meeting = EnvironmentMeeting::Open(place, kNoHurryMs);
    const std::string said = meeting.ok() ? "" : meeting.status().message();
    (void)!write(words[1], said.data(), said.size());
    _exit(0);
  }
  close(words[1]);
  std::string said;
  std::array<char, 1024> bytes{};
  for (ssize_t size = 0; (size = read(words[0], bytes.data(), bytes.size())) > 0;) {
    said.append(bytes.data(), static_cast<size_t>(size));
  }
  close(words[0]);
  EXPECT_EQ(waitpid(child, nullptr, 0), child);
  return said;
}

TEST(DescendantOfARankTest, IsToldThatItHasTheRanksVariables) {
  MeetingPlace place = PlaceOf(1, 2, /*is_local=*/true);
  for (const int generations : {1, 3}) {
    const auto rank = OpenAt(place);
    EXPECT_THAT(ErrorInDescendant(place, generations),
                AllOf(HasSubstr("pid " + std::to_string(getpid()) + ", a rank of a job, has"),
                      HasSubstr("RANK=" + std::to_string(place.rank) + " "),
                      HasSubstr("env -u RANK -u WORLD_SIZE")));
    place.rank = 0;  // of that job none else listens
  }
}

TEST(DescendantOfARankTest, MayFollowARankThatHasLeftItsJob) {
  const MeetingPlace place = PlaceOf(1, 2, /*is_local=*/true);
  OpenAt(place).reset();
  EXPECT_EQ(ErrorInDescendant(place, 1), "");
}

TEST(DescendantOfARankTest, MayMeetElsewhere) {
  const auto rank = OpenAt(PlaceOf(1, 2, /*is_local=*/true));
  EXPECT_EQ(ErrorInDescendant(PlaceOf(1, 2, /*is_local=*/true), 1), "");
}

TEST(DescendantOfARankTest, OfAJobOfOneIsAJobOfOneItself) {
  const MeetingPlace place = PlaceOf(0, 1, /*is_local=*/true);
  const auto rank = OpenAt(place);
  EXPECT_EQ(ErrorInDescendant(place, 1), "");
}

}  // namespace
}  // namespace ferry::client
