// Messages of all kinds and sizes by a direct link.
#include <cstring>
#include <string>
#include <tuple>

#include "daemon/session/rank_view.h"
#include "tests/client/direct/links_fixture.h"

namespace ferry::client {
namespace {

using shm::kAnySource;
using shm::kAnyTag;

class LinkMessagesTest : public LinksTest {
 protected:
  void SetUp() override { ASSERT_NO_FATAL_FAILURE(StartLinked()); }
};

// ---- Sizes and memory --------------------------------------------------------------------------

struct Memory {
  const char* name;
  bool source_in_heap;
  bool destination_in_heap;
};
constexpr Memory kAllMemory[] = {{"HeapToHeap", true, true},
                                 {"HeapToPrivate", true, false},
                                 {"PrivateToHeap", false, true},
                                 {"PrivateToPrivate", false, false}};
enum class First { kReceive, kSend };

class LinkSizesTest : public LinkMessagesTest,
                      public testing::WithParamInterface<std::tuple<Memory, First>> {};

TEST_P(LinkSizesTest, EachMessageArrivesWhole) {
  const auto& [memory, first] = GetParam();
  constexpr uint64_t kOffset = 4096 + 24;
  uint32_t seed = 0;
  for (const uint64_t size :
       {0ULL, 1ULL, 32ULL, 33ULL, 1024ULL, 8192ULL, 8193ULL, 16384ULL, 32768ULL, 65536ULL, 65537ULL,
        262144ULL, 524288ULL, 524289ULL, 1048576ULL, 4194304ULL, 4194307ULL}) {
    SCOPED_TRACE(size);
    const std::vector<std::byte> sent = Pattern(size, ++seed);
    std::vector<std::byte> got(size);
    std::memcpy(rank(0).heap() + kOffset, sent.data(), size);
    std::memset(rank(1).heap() + kOffset, 0, size);
    const shm::Location source = memory.source_in_heap ? InHeap(kOffset) : Private(sent.data());
    const shm::Location destination =
        memory.destination_in_heap ? InHeap(kOffset) : Private(got.data());
    const auto send = [&] {
      const void* data = memory.source_in_heap ? rank(0).heap() + kOffset : sent.data();
      return size <= shm::kCellBytes ? rank(0).Send(1, 7, data, size)
                                     : rank(0).SendFrom(1, 7, source, size);
    };
    Passage passage{0, 1};
    if (first == First::kReceive) {
      passage.receive = rank(1).Receive(0, 7, destination, size);
      passage.send = send();
    } else {
      passage.send = send();
      engine::ProbeResult found;
      ASSERT_TRUE(Meanwhile([&] { return rank(1).Probe(0, 7, &found); }));
      EXPECT_EQ(found.size_bytes, size);
      passage.receive = rank(1).Receive(0, 7, destination, size);
    }
    ExpectEnd(passage);
    const void* where = memory.destination_in_heap ? rank(1).heap() + kOffset : got.data();
    ASSERT_EQ(std::memcmp(where, sent.data(), size), 0);
  }
  ExpectIdle(0, 1);
}

INSTANTIATE_TEST_SUITE_P(All, LinkSizesTest,
                         testing::Combine(testing::ValuesIn(kAllMemory),
                                          testing::Values(First::kReceive, First::kSend)),
                         [](const auto& parameters) {
                           return std::string(std::get<0>(parameters.param).name) +
                                  (std::get<1>(parameters.param) == First::kReceive ? "ReceiveFirst"
                                                                                    : "SendFirst");
                         });

// ---- The daemons' view of the ranks -------------------------------------------------------------

// A rank as its daemon knows it.
class SeenRank {
 public:
  explicit SeenRank(const engine::SessionView& view) {
    session_.local_size = view.inbox.local_size;
    session_.job_size = view.job_size;
    session_.request_limit = view.request_limit;
    session_.session_map = shm::Mapping(view.base(), view.size_bytes);
  }
  ~SeenRank() { (void)session_.session_map.Release(); }  // it is the rank's
  bool HasTransfers(uint32_t peer) const { return daemon::HasLinkTransfers(session_, peer); }

 private:
  daemon::Session session_;
};

TEST_F(LinkMessagesTest, TheDaemonsSeeLongTransfers) {
  const std::vector<std::byte> sent = Pattern(4 << 20, 3);
  std::vector<std::byte> got(sent.size());
  const SeenRank sender(rank(0).view());
  const SeenRank receiver(rank(1).view());
  Carry(0, 1);
  EXPECT_FALSE(sender.HasTransfers(1));
  Passage passage{0, 1};
  passage.send = rank(0).SendFrom(1, 7, Private(sent.data()), sent.size());
  EXPECT_TRUE(sender.HasTransfers(1));
  engine::ProbeResult found;
  ASSERT_TRUE(Meanwhile([&] { return rank(1).Probe(0, 7, &found); }));
  EXPECT_FALSE(receiver.HasTransfers(0));
  passage.receive = rank(1).Receive(0, 7, Private(got.data()), got.size());
  EXPECT_TRUE(sender.HasTransfers(1));
  EXPECT_TRUE(receiver.HasTransfers(0));
  ExpectEnd(passage);
  EXPECT_FALSE(sender.HasTransfers(1));
  EXPECT_FALSE(receiver.HasTransfers(0));
}

// ---- Kinds -------------------------------------------------------------------------------------

TEST_F(LinkMessagesTest, SynchronousSendEndsOnlyWithItsReceive) {
  for (const uint64_t size : {0ULL, 8ULL, 4096ULL, 65536ULL, 1048576ULL}) {
    SCOPED_TRACE(size);
    const std::vector<std::byte> sent = Pattern(size, 3);
    std::vector<std::byte> got(size);
    const uint32_t send =
        rank(0).SendFrom(1, 7, Private(sent.data()), size, shm::kRequestSynchronous);
    engine::ProbeResult found;
    ASSERT_TRUE(Meanwhile([&] { return rank(1).Probe(0, 7, &found); }));
    // Messages behind it have come, so its end would have been here, too.
    Carry(0, 1);
    Carry(1, 0);
    EXPECT_FALSE(rank(0).Test(send));
    ExpectEnd({0, 1, send, rank(1).Receive(0, 7, Private(got.data()), size)});
    EXPECT_EQ(got, sent);
  }
  ExpectIdle(0, 1);
}

class LinkTruncationTest : public LinkMessagesTest,
                           public testing::WithParamInterface<std::tuple<bool, bool>> {};

TEST_P(LinkTruncationTest, LongMessageIsTruncatedToItsReceive) {
  const auto [has_room, receive_first] = GetParam();
  for (const uint64_t size : {16ULL, 8000ULL, 65536ULL, 524288ULL, 1048576ULL}) {
    SCOPED_TRACE(size);
    const std::vector<std::byte> sent = Pattern(size, 5);
    std::vector<std::byte> got(size, std::byte{0x55});
    const uint64_t room = has_room ? size / 2 + 3 : 0;
    uint32_t receive = 0;
    if (receive_first) {
      receive = rank(1).Receive(0, 7, Private(got.data()), room);
    }
    const uint32_t send = size <= shm::kCellBytes
                              ? rank(0).Send(1, 7, sent.data(), size)
                              : rank(0).SendFrom(1, 7, Private(sent.data()), size);
    if (!receive_first) {
      engine::ProbeResult found;
      ASSERT_TRUE(Meanwhile([&] { return rank(1).Probe(0, 7, &found); }));
      receive = rank(1).Receive(0, 7, Private(got.data()), room);
    }
    EXPECT_EQ(Wait(1, receive), ErrorCode::kTruncated);
    EXPECT_EQ(rank(1).Slot(receive).message_bytes, size);
    EXPECT_EQ(Wait(0, send), ErrorCode::kOk);
    EXPECT_EQ(std::memcmp(got.data(), sent.data(), room), 0);
    for (uint64_t i = room; i < size; ++i) {
      ASSERT_EQ(got[i], std::byte{0x55}) << "beyond the buffer, at " << i;
    }
  }
  ExpectIdle(0, 1);
}

INSTANTIATE_TEST_SUITE_P(All, LinkTruncationTest,
                         testing::Combine(testing::Bool(), testing::Bool()),
                         [](const auto& parameters) {
                           return std::string(std::get<0>(parameters.param) ? "Some" : "No") +
                                  "Room" +
                                  (std::get<1>(parameters.param) ? "ReceiveFirst" : "SendFirst");
                         });

TEST_F(LinkMessagesTest, ReceivesFromAnySourceAndWithAnyTag) {
  for (const uint64_t size : {8ULL, 2000ULL, 65536ULL, 1048576ULL}) {
    SCOPED_TRACE(size);
    const std::vector<std::byte> sent = Pattern(size, 6);
    std::vector<std::byte> got(size);
    const uint32_t receive = rank(1).Receive(kAnySource, kAnyTag, Private(got.data()), size);
    const uint32_t send = rank(0).Send(1, 41, sent.data(), size);
    EXPECT_TRUE(Meanwhile([&] { return rank(1).Test(receive); }));
    EXPECT_EQ(rank(1).Slot(receive).status_source, 0);
    EXPECT_EQ(rank(1).Slot(receive).status_tag, 41);
    ExpectEnd({0, 1, send, receive});
    EXPECT_EQ(got, sent);
  }
}

TEST_F(LinkMessagesTest, CancelledSendIsReceivedOrTakenBack) {
  for (const uint64_t size : {65536ULL, 1048576ULL}) {
    SCOPED_TRACE(size);
    const std::vector<std::byte> sent = Pattern(size, 8);
    const uint32_t send =
        rank(0).SendFrom(1, 7, Private(sent.data()), size, shm::kRequestSynchronous);
    Carry(0, 1);  // comes behind it
    EXPECT_TRUE(rank(0).Cancel(send));
    EXPECT_EQ(Wait(0, send), ErrorCode::kCancelled);
    Carry(0, 1);
    engine::ProbeResult found;
    EXPECT_FALSE(rank(1).Probe(0, 7, &found));
    // One that was probed is as good as received.
    const uint32_t probed =
        rank(0).SendFrom(1, 7, Private(sent.data()), size, shm::kRequestSynchronous);
    ASSERT_TRUE(Meanwhile([&] { return rank(1).Probe(0, 7, &found); }));
    (void)rank(0).Cancel(probed);
    std::vector<std::byte> got(size);
    ExpectEnd({0, 1, probed, rank(1).Receive(0, 7, Private(got.data()), size)});
    EXPECT_EQ(got, sent);
  }
  ExpectIdle(0, 1);
}

TEST_F(LinkMessagesTest, CancelledReceiveLeavesTheMessageToAnother) {
  std::vector<std::byte> got(1 << 20);
  const uint32_t cancelled = rank(1).Receive(0, 7, Private(got.data()), got.size());
  EXPECT_TRUE(rank(1).Cancel(cancelled));
  EXPECT_EQ(Wait(1, cancelled), ErrorCode::kCancelled);
  const std::vector<std::byte> sent = Pattern(got.size(), 9);
  const uint32_t send = rank(0).SendFrom(1, 7, Private(sent.data()), sent.size());
  ExpectEnd({0, 1, send, rank(1).Receive(0, 7, Private(got.data()), got.size())});
  EXPECT_EQ(got, sent);
}

constexpr shm::Location kByStream{kStreamRegion, shm::kLocationByStream, 0};

// The rank brings it there from host memory.
TEST_F(LinkMessagesTest, WhatIsForMemoryThatOnlyStreamsReachLandsInHostMemory) {
  for (const First first : {First::kReceive, First::kSend}) {
    for (const uint64_t size : {0ULL, 8193ULL, 65536ULL, 300'000ULL, 1'048'577ULL, 4'194'307ULL}) {
      SCOPED_TRACE(size);
      const std::vector<std::byte> sent = Pattern(size, 5);
      Passage passage{0, 1};
      if (first == First::kReceive) {
        passage.receive = rank(1).Receive(0, 7, kByStream, size);
      }
      passage.send = rank(0).SendFrom(1, 7, Private(sent.data()), size);
      if (first == First::kSend) {
        engine::ProbeResult found;
        ASSERT_TRUE(Meanwhile([&] { return rank(1).Probe(0, 7, &found); }));
        passage.receive = rank(1).Receive(0, 7, kByStream, size);
      }
      EXPECT_EQ(Wait(0, passage.send), ErrorCode::kOk);
      EXPECT_EQ(Wait(1, passage.receive), ErrorCode::kOk);
      EXPECT_EQ(rank(1).TakeLanded(passage.receive), sent);
    }
  }
  ExpectIdle(0, 1);
}

TEST_F(LinkMessagesTest, WhatFindsNoHostMemoryIsToldToBoth) {
  rank(1).RefuseLandings();
  const std::vector<std::byte> sent = Pattern(2 << 20, 5);  // not pushed: its sender waits
  const Passage passage{0, 1, rank(0).SendFrom(1, 7, Private(sent.data()), sent.size()),
                        rank(1).Receive(0, 7, kByStream, sent.size())};
  EXPECT_EQ(Wait(0, passage.send), ErrorCode::kOutOfMemory);
  EXPECT_EQ(Wait(1, passage.receive), ErrorCode::kOutOfMemory);
  Carry(0, 1);
}

TEST_F(LinkMessagesTest, WhatIsFromMemoryThatOnlyStreamsReachIsRefused) {
  std::vector<std::byte> got(1 << 20);
  Passage passage{0, 1};
  passage.receive = rank(1).Receive(0, 7, Private(got.data()), got.size());
  passage.send = rank(0).SendFrom(1, 7, kByStream, got.size());
  EXPECT_NE(Wait(1, passage.receive), ErrorCode::kOk);
  EXPECT_NE(Wait(0, passage.send), ErrorCode::kOk);
  Carry(0, 1);
  EXPECT_TRUE(rank(0).violations().empty());
}

// ---- Order and bounds --------------------------------------------------------------------------

// Sizes of all ways, in one order; no receive is posted until all are sent.
TEST_F(LinkMessagesTest, MessagesStayInOrderWhateverTheirSizes) {
  constexpr uint64_t kSizes[] = {8, 100'000, 1, 9000, 700'000, 0, 64, 65'536, 8192, 1'500'000, 33};
  constexpr uint32_t kMessages = 300;
  std::vector<std::vector<std::byte>> sent(kMessages), got(kMessages);
  std::vector<uint32_t> sends(kMessages), receives(kMessages);
  for (uint32_t i = 0; i < kMessages; ++i) {
    sent[i] = Pattern(kSizes[i % std::size(kSizes)] / (1 + i % 3), i);
    got[i].resize(sent[i].size());
    sends[i] = rank(0).Send(1, 7, sent[i].data(), sent[i].size());
  }
  for (uint32_t i = 0; i < kMessages; ++i) {
    receives[i] = rank(1).Receive(0, 7, Private(got[i].data()), got[i].size());
    ProgressAll();
  }
  for (uint32_t i = 0; i < kMessages; ++i) {
    SCOPED_TRACE(i);
    ExpectEnd({0, 1, sends[i], receives[i]});
    ASSERT_EQ(got[i], sent[i]);
  }
  ExpectIdle(0, 1);
}

TEST_F(LinkMessagesTest, BothWaysAtOnce) {
  constexpr uint32_t kMessages = 64;
  for (const uint64_t size : {64ULL, 8192ULL, 65536ULL, 1048576ULL}) {
    SCOPED_TRACE(size);
    std::vector<std::byte> sent[2], got[2];
    std::vector<Passage> passages;
    for (const uint32_t from : {0U, 1U}) {
      sent[from] = Pattern(size, 20 + from);
      got[from].resize(size * kMessages);
    }
    for (uint32_t i = 0; i < kMessages; ++i) {
      for (const uint32_t from : {0U, 1U}) {
        Passage passage{from, 1 - from};
        passage.receive = rank(1 - from).Receive(static_cast<int32_t>(from), 7,
                                                 Private(got[from].data() + i * size), size);
        passage.send = rank(from).Send(1 - from, 7, sent[from].data(), size);
        passages.push_back(passage);
      }
    }
    for (const Passage& passage : passages) {
      ExpectEnd(passage);
    }
    for (const uint32_t from : {0U, 1U}) {
      for (uint32_t i = 0; i < kMessages; ++i) {
        ASSERT_EQ(std::memcmp(got[from].data() + i * size, sent[from].data(), size), 0);
      }
    }
  }
  ExpectIdle(0, 1);
}

TEST_F(LinkMessagesTest, CountsWhatTheLinkHasMoved) {
  const uint64_t sent_before = rank(0).Statistic(shm::Statistic::kLinkBytesSent);
  const uint64_t got_before = rank(1).Statistic(shm::Statistic::kLinkBytesReceived);
  EXPECT_EQ(rank(0).Statistic(shm::Statistic::kLinksOpen), 1U);
  const std::vector<std::byte> sent = Pattern(100'000, 1);
  std::vector<std::byte> got(sent.size());
  Passage passage{0, 1};
  passage.receive = rank(1).Receive(0, 7, Private(got.data()), got.size());
  passage.send = rank(0).SendFrom(1, 7, Private(sent.data()), sent.size());
  ExpectEnd(passage);
  ExpectIdle(0, 1);
  if (link_provider == std::string("ferry-tcp")) {  // else the peer has read them, without us
    EXPECT_GE(rank(0).Statistic(shm::Statistic::kLinkBytesSent) - sent_before, sent.size());
  }
  EXPECT_GE(rank(1).Statistic(shm::Statistic::kLinkBytesReceived) - got_before, sent.size());
  EXPECT_GT(rank(0).Statistic(shm::Statistic::kLinkMessagesSent), 0U);
  EXPECT_EQ(rank(0).Statistic(shm::Statistic::kLinkErrors), 0U);
  rank(0).End(1, ErrorCode::kLinkDown);
  EXPECT_EQ(rank(0).Statistic(shm::Statistic::kLinksOpen), 0U);
}

// ---- Several links, and none --------------------------------------------------------------------

class LinkSetTest : public LinksTest {};

TEST_F(LinkSetTest, OneRankHasLinksToMany) {
  constexpr uint32_t kRanks = 6;
  ASSERT_NO_FATAL_FAILURE(Start(kRanks));
  for (uint32_t one = 0; one < kRanks; ++one) {
    for (uint32_t other = one + 1; other < kRanks; ++other) {
      ASSERT_NO_FATAL_FAILURE(Connect(one, other));
      ASSERT_NO_FATAL_FAILURE(Use(one, other));
      ASSERT_NO_FATAL_FAILURE(Use(other, one));
    }
  }
  const uint64_t size = 200'000;
  std::vector<std::vector<std::byte>> sent(kRanks);
  std::vector<std::vector<std::byte>> got(kRanks, std::vector<std::byte>(size * kRanks));
  std::vector<Passage> passages;
  for (uint32_t from = 0; from < kRanks; ++from) {
    sent[from] = Pattern(size, from);
    for (uint32_t to = 0; to < kRanks; ++to) {
      if (to != from) {
        Passage passage{from, to};
        passage.send = rank(from).SendFrom(to, 7, Private(sent[from].data()), size);
        passage.receive = rank(to).Receive(static_cast<int32_t>(from), 7,
                                           Private(got[to].data() + from * size), size);
        passages.push_back(passage);
      }
    }
  }
  for (const Passage& passage : passages) {
    ExpectEnd(passage);
    ASSERT_EQ(
        std::memcmp(got[passage.to].data() + passage.from * size, sent[passage.from].data(), size),
        0);
  }
  ExpectIdle(0, 5);
}

TEST_F(LinkSetTest, PathsAreSwitchedThereAndBackUnderTraffic) {
  ASSERT_NO_FATAL_FAILURE(Start(2));
  ASSERT_NO_FATAL_FAILURE(Connect(0, 1));
  uint64_t next_sent = 0, next_got = 0;
  constexpr uint32_t kInFlight = 40;
  const auto exchange = [&] {
    uint64_t words[kInFlight], got[kInFlight];
    std::vector<Passage> passages;
    for (uint32_t i = 0; i < kInFlight; ++i) {
      words[i] = next_sent++;
      Passage passage{0, 1};
      passage.send = rank(0).Send(1, 7, &words[i], sizeof(words[i]));
      passage.receive = rank(1).Receive(0, 7, Private(&got[i]), sizeof(got[i]));
      passages.push_back(passage);
      if (i % 8 == 0) {
        ProgressAll();
      }
    }
    for (const Passage& passage : passages) {
      ExpectEnd(passage);
    }
    for (const uint64_t word : got) {
      ASSERT_EQ(word, next_got++);
    }
  };
  for (int round = 0; round < 20; ++round) {
    SCOPED_TRACE(round);
    ASSERT_EQ(rank(0).UseLink(1), ErrorCode::kOk);
    exchange();
    ASSERT_TRUE(
        Meanwhile([&] { return rank(0).engine().paths().PathTo(1) == shm::PeerPath::kLink; }));
    exchange();
    rank(0).LeaveLink(1);
    exchange();
    ASSERT_TRUE(
        Meanwhile([&] { return rank(0).engine().paths().PathTo(1) == shm::PeerPath::kDaemon; }));
  }
  ExpectIdle(0, 1);
}

TEST_F(LinkSetTest, ConnectRefusesWhatIsNoLink) {
  ASSERT_NO_FATAL_FAILURE(Start(2));
  const LinkAddress address = rank(1).links().AddressFor(0);
  EXPECT_EQ(rank(0).Connect(0, RouteTo(address, 1, 2)).code(), ErrorCode::kInvalidRank);
  EXPECT_EQ(rank(0).Connect(2, RouteTo(address, 1, 2)).code(), ErrorCode::kInvalidRank);
  LinkAddress bad = address;
  bad.size_bytes = 3;
  EXPECT_EQ(rank(0).Connect(1, RouteTo(bad, 1, 2)).code(), ErrorCode::kInvalidArgument);
  bad.size_bytes = kLinkAddressBytes + 1;
  EXPECT_EQ(rank(0).Connect(1, RouteTo(bad, 1, 2)).code(), ErrorCode::kInvalidArgument);
  EXPECT_TRUE(rank(0).Connect(1, RouteTo(address, 1, 2)).ok());
  EXPECT_EQ(rank(0).Connect(1, RouteTo(address, 1, 2)).code(), ErrorCode::kAlreadyExists);
  EXPECT_EQ(rank(0).Statistic(shm::Statistic::kLinksOpen), 1U);
}

}  // namespace
}  // namespace ferry::client
