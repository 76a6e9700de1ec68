// Strangers pass descriptors, and no other client waits until they are closed.
#include <fcntl.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <chrono>
#include <future>
#include <iterator>
#include <string>

#include "common/passed_descriptors.h"
#include "daemon/grpc/byte_sieve.h"
#include "daemon/sockets/disposal.h"
#include "daemon/sockets/packet_socket.h"
#include "daemon/worker/worker_supervisor.h"
#include "shm/segment.h"
#include "tests/daemon/attach/attach_server_fixture.h"
#include "tests/daemon/stuck_descriptors.h"

namespace ferry::daemon {
namespace {

using attach::Kind;

constexpr uid_t kStranger = 12345;
constexpr std::chrono::seconds kLongEnough(30);  // half of a socket's linger time

constexpr std::array<char, 100> kGarbage{};

#define FERRY_SKIP_WITHOUT(files)                                              \
  if (!(files).ok()) {                                                         \
    ASSERT_EQ((files).status().code(), ErrorCode::kUnsupported);               \
    GTEST_SKIP() << "needs a FUSE of its own: " << (files).status().message(); \
  }

std::pair<UniqueFd, UniqueFd> SocketPair(int type) {
  int ends[2] = {-1, -1};
  EXPECT_EQ(socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, ends), 0);
  return {UniqueFd(ends[0]), UniqueFd(ends[1])};
}

// Sends more descriptors than any correct program passes, by hand.
ssize_t SendMany(int socket, const std::vector<int>& fds) {
  std::vector<char> control(CMSG_SPACE(fds.size() * sizeof(int)));
  char byte = 'x';
  iovec piece{&byte, 1};
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  cmsghdr* rights = CMSG_FIRSTHDR(&message);
  rights->cmsg_level = SOL_SOCKET;
  rights->cmsg_type = SCM_RIGHTS;
  rights->cmsg_len = CMSG_LEN(fds.size() * sizeof(int));
  std::memcpy(CMSG_DATA(rights), fds.data(), fds.size() * sizeof(int));
  return sendmsg(socket, &message, MSG_NOSIGNAL);
}

// Strangers act on the control thread, so that it receives only what they have let go of: the last
// one to close a descriptor waits. Then that thread serves others: a rank attaches.
class ForeignDescriptorsTest : public AttachServerTest {
 protected:
  void ExpectOthersAreServed() {
    TestRank next = Rank(2);
    EXPECT_TRUE(next.Enter(socket_path_));
  }
};

TEST_F(ForeignDescriptorsTest, ALingeringSocketHoldsUpNobody) {
  LingeringSocket lingering;
  ASSERT_GE(lingering.get(), 0);
  TestRank stranger = Connected(0);
  loop_->Run([&] {
    EXPECT_TRUE(SendPacket(stranger.socket(), kGarbage, std::array{lingering.get()}).ok());
    lingering.CloseOwn();
  });
  EXPECT_EQ(stranger.Read().kind(), Kind::kGoodbye);
  ExpectOthersAreServed();
}

TEST_F(ForeignDescriptorsTest, NorDoMoreThanAPacketMayCarry) {
  std::vector<LingeringSocket> lingering(kMaxPacketFds + 3);
  std::vector<int> fds;
  for (const LingeringSocket& one : lingering) {
    ASSERT_GE(one.get(), 0);
    fds.push_back(one.get());
  }
  TestRank stranger = Connected(0);
  loop_->Run([&] {
    EXPECT_EQ(SendMany(stranger.socket(), fds), 1);
    for (LingeringSocket& one : lingering) {
      one.CloseOwn();
    }
  });
  ExpectRefusal(stranger.Read(), ErrorCode::kCorrupt, "more than 4 descriptors");
  ExpectOthersAreServed();
}

TEST_F(ForeignDescriptorsTest, NorDoThoseThatNobodyHasReceived) {
  LingeringSocket lingering;
  ASSERT_GE(lingering.get(), 0);
  TestRank stranger = Connected(0);
  loop_->Run([&] {  // both are there when the first is read, which ends the connection
    EXPECT_TRUE(SendPacket(stranger.socket(), kGarbage).ok());
    EXPECT_TRUE(SendPacket(stranger.socket(), kGarbage, std::array{lingering.get()}).ok());
    lingering.CloseOwn();
  });
  EXPECT_EQ(stranger.Read().kind(), Kind::kGoodbye);
  ExpectOthersAreServed();
}

TEST_F(ForeignDescriptorsTest, NorDoThoseOfConnectionsBeyondTheLimit) {
  Restart(20'000, {64, 3});
  TestRank first = Entered(0);
  TestRank second = Entered(1);
  std::vector<LingeringSocket> lingering(20);
  loop_->Run([&] {
    for (LingeringSocket& one : lingering) {
      TestRank stranger = Connected(3);
      ASSERT_TRUE(SendPacket(stranger.socket(), kGarbage, std::array{one.get()}).ok());
      one.CloseOwn();
    }
  });
  EXPECT_EQ(first.AskPeer(Kind::kPeerInbox, 1).code(), ErrorCode::kOk);
  for (size_t open = Connections(); open > 2; open = Connections()) {
  }
  ExpectOthersAreServed();
}

TEST_F(ForeignDescriptorsTest, NorTheEndOfTheServer) {
  LingeringSocket lingering;
  loop_->Run([&] {
    TestRank stranger = Connected(3);
    ASSERT_TRUE(SendPacket(stranger.socket(), kGarbage, std::array{lingering.get()}).ok());
    lingering.CloseOwn();
    server_->Stop();  // the connection was not even accepted
  });
  auto end = std::async(std::launch::async, [this] { Stop(); });
  EXPECT_EQ(end.wait_for(kLongEnough), std::future_status::ready);
}

TEST_F(ForeignDescriptorsTest, AFileWhoseServerIsSilentHoldsUpNobody) {
  const auto files = StuckFiles::Mount();
  FERRY_SKIP_WITHOUT(files);
  const StatusOr<int> file = (*files)->Open();  // our own copy stays open
  ASSERT_TRUE(file.ok()) << file.status().message();
  TestRank stranger = Entered(0);
  // The file is refused as a segment before anything is called that its server could hold up.
  ExpectRefusal(stranger.SendRegion(1, 4096, *file), ErrorCode::kCorrupt, "not sealed");
  ExpectOthersAreServed();
  while ((*files)->waiting() == 0) {
  }
  EXPECT_FALSE((*files)->was_asked());
}

TEST_F(ForeignDescriptorsTest, NorDoesOneThatPassesForADevice) {
  const auto files = StuckFiles::Mount();
  FERRY_SKIP_WITHOUT(files);
  const StatusOr<int> file = (*files)->Open();  // our own copy stays open
  ASSERT_TRUE(file.ok()) << file.status().message();
  TestRank stranger = Entered(0);
  ExpectRefusal(stranger.SendRegion(1, 4096, *file, attach::kRegionByStream), ErrorCode::kCorrupt,
                "no handle of device memory");
  ExpectOthersAreServed();
  EXPECT_FALSE((*files)->was_asked());
}

TEST_F(ForeignDescriptorsTest, NorDoesOneThatPassesForADmabuf) {
  const auto files = StuckFiles::Mount();
  FERRY_SKIP_WITHOUT(files);
  const StatusOr<int> file = (*files)->Open();  // our own copy stays open
  ASSERT_TRUE(file.ok()) << file.status().message();
  TestRank stranger = Entered(0);
  constexpr uint32_t kFlags = attach::kRegionByStream | attach::kRegionDmabuf;
  ExpectRefusal(stranger.SendRegion(1, 4096, *file, kFlags), ErrorCode::kCorrupt,
                "no handle of device memory");
  ExpectOthersAreServed();
  EXPECT_FALSE((*files)->was_asked());
}

TEST(DisposalTest, TakesNoMoreOfWhoMakesItHang) {
  auto files = StuckFiles::Mount();
  FERRY_SKIP_WITHOUT(files);
  Disposal& disposal = Disposal::Instance();
  int passed = 0;
  for (; disposal.MayPass(kStranger); ++passed) {
    ASSERT_LT(passed, 1000);
    const StatusOr<int> file = (*files)->Open();
    ASSERT_TRUE(file.ok()) << file.status().message();
    std::vector<UniqueFd> fds;
    fds.emplace_back(*file);
    disposal.CloseUnasked(kStranger, std::move(fds));
  }
  EXPECT_GE(passed, 4) << "a packet's worth";
  EXPECT_TRUE(disposal.MayPass(kStranger + 1)) << "others are not affected";
  const auto [here, there] = SocketPair(SOCK_SEQPACKET);
  ASSERT_TRUE(SendPacket(here.get(), 'x', std::array{here.get()}).ok());
  ForeignPacket packet(kStranger);
  const StatusOr<Received> received = ReceiveForeignPacket(there.get(), &packet);
  ASSERT_FALSE(received.ok());
  EXPECT_EQ(received.status().code(), ErrorCode::kLimitExceeded);
  EXPECT_TRUE(packet.fds.empty()) << "not received";
  files->reset();  // the server ends
  while (!disposal.MayPass(kStranger)) {
  }
}

TEST(DisposalTest, ClosesEverySocketThoughTheyAllLinger) {
  const size_t before = [] {
    Disposal::Instance();
    return OpenDescriptors();
  }();
  std::vector<LingeringSocket> lingering(100);
  const size_t held = OpenDescriptors() - lingering.size();
  for (LingeringSocket& one : lingering) {
    ASSERT_GE(one.get(), 0);
    auto [sender, receiver] = SocketPair(SOCK_SEQPACKET);
    ASSERT_TRUE(SendPacket(sender.get(), 'x', std::array{one.get()}).ok());
    one.CloseOwn();
    Disposal::Instance().CloseSocket(std::move(receiver));
  }
  EXPECT_LE(SettledDescriptors(held), held);
  lingering.clear();
  EXPECT_LE(SettledDescriptors(before), before);
}

TEST(DisposalTest, RanksMemoryIsGivenBackByNobodyWhoServes) {
  constexpr uint64_t kBytes = 256 << 20;
  struct Memory {
    UniqueFd fd;
    shm::Mapping mapping;
  };
  const auto make = [] {
    StatusOr<UniqueFd> fd = shm::CreateSegment("rank's-memory", kBytes);
    EXPECT_TRUE(fd.ok());
    StatusOr<shm::Mapping> mapping = shm::MapSegment(fd->get(), kBytes);
    EXPECT_TRUE(mapping.ok() && shm::Prefault(mapping->base(), kBytes).ok());
    return Memory{std::move(*fd), std::move(*mapping)};
  };
  const auto cpu_time_of = [](const auto& what) {
    timespec begin{};
    timespec end{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
    what();
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
    return (end.tv_sec - begin.tv_sec) * 1'000'000'000 + end.tv_nsec - begin.tv_nsec;
  };
  Memory by_us = make();
  const auto whole = cpu_time_of([&] {
    by_us.mapping = {};
    by_us.fd.Reset();
  });
  Memory by_others = make();
  const auto ours = cpu_time_of(
      [&] { Disposal::Instance().Release(std::move(by_others.mapping), std::move(by_others.fd)); });
  EXPECT_LT(ours, whole / 4);
  const auto is_mapped = [] { return OwnMappings("rank's-memory") != 0; };
  const auto end = std::chrono::steady_clock::now() + kLongEnough;
  while (is_mapped() && std::chrono::steady_clock::now() < end) {
    sched_yield();
  }
  EXPECT_FALSE(is_mapped());
}

TEST(DisposalTest, KnowsWhatItWasPassed) {
  const StatusOr<UniqueFd> sealed = shm::CreateSegment("test", 4096);
  const UniqueFd unsealed(memfd_create("test", MFD_CLOEXEC));
  const UniqueFd anonymous(eventfd(0, EFD_CLOEXEC));
  const UniqueFd device(open("/dev/null", O_RDONLY | O_CLOEXEC));
  const UniqueFd file(open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
  const LingeringSocket lingering;
  ASSERT_TRUE(sealed.ok());
  EXPECT_EQ(KindOf(sealed->get()), PassedKind::kSealedMemory);
  EXPECT_EQ(KindOf(unsealed.get()), PassedKind::kMemory);
  EXPECT_EQ(KindOf(anonymous.get()), PassedKind::kDevice);
  EXPECT_EQ(KindOf(device.get()), PassedKind::kDevice);
  EXPECT_EQ(KindOf(file.get()), PassedKind::kOther);
  EXPECT_EQ(KindOf(lingering.get()), PassedKind::kOther);
}

TEST(WorkerRepliesTest, ALingeringSocketOfAWorkerHoldsUpNobody) {
  LingeringSocket lingering;
  ASSERT_GE(lingering.get(), 0);
  const auto [here, worker] = SocketPair(SOCK_SEQPACKET);
  ASSERT_TRUE(SendPacket(worker.get(), MakeWorkerMessage(WorkerMessageKind::kReady),
                         std::array{lingering.get()})
                  .ok());
  lingering.CloseOwn();
  auto read = std::async(std::launch::async, [&here = here] {
    return WorkerReplies().Read(here.get(), kStranger, {}).status().code();
  });
  ASSERT_EQ(read.wait_for(kLongEnough), std::future_status::ready);
  EXPECT_EQ(read.get(), ErrorCode::kCorrupt);
}

// ---- Between strangers and gRPC ----

class ByteSieveTest : public ::testing::Test {
 protected:
  ByteSieveTest() {
    auto [client, stranger] = SocketPair(SOCK_STREAM);
    client_ = std::move(client);
    StatusOr<UniqueFd> server = sieve_.Pass(std::move(stranger));
    EXPECT_TRUE(server.ok());
    server_ = std::move(*server);
    EXPECT_EQ(fcntl(server_.get(), F_SETFL, 0), 0);  // here it may block
  }
  // Reads until the other end closes.
  static std::string ReadAll(int socket) {
    std::string all;
    std::array<char, 5000> piece;
    for (ssize_t size = 0; (size = recv(socket, piece.data(), piece.size(), 0)) > 0;) {
      all.append(piece.data(), static_cast<size_t>(size));
    }
    return all;
  }

  ByteSieve sieve_{"the socket", {}};
  UniqueFd client_;
  UniqueFd server_;
};

TEST_F(ByteSieveTest, PassesOnWhatIsWrittenBothWaysAtOnce) {
  std::string asked(3'000'001, 'a');
  std::string answered(5'000'003, 'b');
  for (size_t i = 0; i < asked.size(); ++i) {
    asked[i] = static_cast<char>(i % 251);
  }
  const auto say = [](int socket, const std::string& text) {
    for (size_t sent = 0; sent < text.size();) {
      const ssize_t size = send(socket, &text[sent], text.size() - sent, MSG_NOSIGNAL);
      ASSERT_GT(size, 0);
      sent += static_cast<size_t>(size);
    }
    shutdown(socket, SHUT_WR);
  };
  auto client = std::async(std::launch::async, [&] { say(client_.get(), asked); });
  auto server = std::async(std::launch::async, [&] {
    const std::string got = ReadAll(server_.get());  // nothing of the answer is read meanwhile
    say(server_.get(), answered);
    return got;
  });
  EXPECT_TRUE(ReadAll(client_.get()) == answered);
  EXPECT_TRUE(server.get() == asked);
  while (sieve_.connections() != 0) {
  }
}

TEST_F(ByteSieveTest, TheServersEndEndsTheClient) {
  ASSERT_EQ(send(server_.get(), "last", 4, 0), 4);
  server_.Reset();
  EXPECT_EQ(ReadAll(client_.get()), "last");
}

TEST_F(ByteSieveTest, EndsWhoPassesDescriptorsAfterWhatCameBefore) {
  LingeringSocket lingering;
  ASSERT_GE(lingering.get(), 0);
  auto [client, stranger] = SocketPair(SOCK_STREAM);
  ASSERT_EQ(send(client.get(), "before", 6, 0), 6);
  ASSERT_GT(SendWithDescriptors(client.get(), std::as_bytes(std::span("after")),
                                std::array{lingering.get()}, 0),
            0);
  lingering.CloseOwn();
  StatusOr<UniqueFd> server = sieve_.Pass(std::move(stranger));
  ASSERT_TRUE(server.ok());
  fcntl(server->get(), F_SETFL, 0);
  EXPECT_EQ(ReadAll(server->get()), "") << "nothing of a piece that ends with a descriptor";
  EXPECT_EQ(ReadAll(client.get()), "");
  ASSERT_EQ(send(client_.get(), "others", 6, 0), 6);
  char got[6] = {};
  EXPECT_EQ(recv(server_.get(), got, sizeof(got), MSG_WAITALL), 6) << "the sieve serves others";
}

}  // namespace
}  // namespace ferry::daemon
