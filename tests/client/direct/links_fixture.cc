#include "tests/client/direct/links_fixture.h"

#include <sys/socket.h>

#include <algorithm>
#include <string>

namespace ferry::client {
namespace {

testing::ScopedTrace Traced(const std::source_location& where) {
  return {where.file_name(), static_cast<int>(where.line()), ""};
}

}  // namespace

LinkRoute RouteTo(const LinkAddress& address, uint64_t send_key, uint64_t receive_key) {
  LinkRoute route;
  route.address = address;
  route.send_key = {{send_key, ~send_key << 7}};
  route.receive_key = {{receive_key, ~receive_key << 7}};
  route.serial = send_key;
  return route;
}

void LinksTest::Start(uint32_t ranks, const RankOptions& options) {
  std::vector<std::vector<int>> paths(ranks, std::vector<int>(ranks, -1));
  for (uint32_t one = 0; one < ranks; ++one) {
    for (uint32_t other = one + 1; other < ranks; ++other) {
      int pair[2];
      ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
      sockets_.emplace_back(pair[0]);
      sockets_.emplace_back(pair[1]);
      paths[one][other] = pair[0];
      paths[other][one] = pair[1];
    }
  }
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    ranks_.push_back(std::make_unique<LinkedRank>(rank, ranks, paths[rank], options));
    ASSERT_NO_FATAL_FAILURE(ranks_.back()->OpenLinks());
  }
}

void LinksTest::Connect(uint32_t one, uint32_t other, uint64_t life) {
  const uint64_t there = life * 1000 + one * 10 + other;
  const uint64_t back = life * 1000 + other * 10 + one;
  Status status =
      rank(other).Connect(one, RouteTo(rank(one).links().AddressFor(other), back, there));
  ASSERT_TRUE(status.ok()) << status.ToString();
  status = rank(one).Connect(other, RouteTo(rank(other).links().AddressFor(one), there, back));
  ASSERT_TRUE(status.ok()) << status.ToString();
  ASSERT_TRUE(Meanwhile([&] {
    return rank(one).ConnectionTo(other, /*calls=*/true) == ErrorCode::kOk &&
           rank(other).ConnectionTo(one, /*calls=*/false) == ErrorCode::kOk;
  }));
}

void LinksTest::Use(uint32_t from, uint32_t to) {
  ASSERT_EQ(rank(from).UseLink(to), ErrorCode::kOk);
  ASSERT_TRUE(
      Meanwhile([&] { return rank(from).engine().paths().PathTo(to) == shm::PeerPath::kLink; }));
}

void LinksTest::Leave(uint32_t from, uint32_t to) {
  rank(from).LeaveLink(to);
  ASSERT_TRUE(
      Meanwhile([&] { return rank(from).engine().paths().PathTo(to) == shm::PeerPath::kDaemon; }));
}

void LinksTest::StartLinked(const RankOptions& options) {
  ASSERT_NO_FATAL_FAILURE(Start(2, options));
  ASSERT_NO_FATAL_FAILURE(Connect(0, 1));
  ASSERT_NO_FATAL_FAILURE(Use(0, 1));
  ASSERT_NO_FATAL_FAILURE(Use(1, 0));
}

void LinksTest::ProgressAll() {
  for (const auto& one : ranks_) {
    if (one != nullptr) {
      (void)one->Progress();
    }
  }
}

bool LinksTest::Meanwhile(const std::function<bool()>& condition) {
  return Eventually([&] {
    ProgressAll();
    return condition();
  });
}

ErrorCode LinksTest::Wait(uint32_t waiter, uint32_t request, std::source_location where) {
  const testing::ScopedTrace trace = Traced(where);
  EXPECT_TRUE(Meanwhile([&] { return rank(waiter).Test(request); }))
      << "rank " << waiter << " waits for ever for request " << request;
  return rank(waiter).Finish(request);
}

void LinksTest::ExpectEnd(const Passage& passage, ErrorCode error, std::source_location where) {
  EXPECT_EQ(Wait(passage.to, passage.receive, where), error);
  EXPECT_EQ(Wait(passage.from, passage.send, where), error);
}

void LinksTest::Carry(uint32_t from, uint32_t to, std::source_location where) {
  const testing::ScopedTrace trace = Traced(where);
  const uint64_t word = 4711 + 16 * from + to;
  uint64_t got = 0;
  const uint32_t receive =
      rank(to).Receive(static_cast<int32_t>(from), 99, Private(&got), sizeof(got));
  const uint32_t send = rank(from).Send(to, 99, &word, sizeof(word));
  EXPECT_EQ(Wait(to, receive), ErrorCode::kOk);
  EXPECT_EQ(Wait(from, send), ErrorCode::kOk);
  EXPECT_EQ(got, word);
}

void LinksTest::ExpectIdle(uint32_t one, uint32_t other, std::source_location where) {
  const testing::ScopedTrace trace = Traced(where);
  EXPECT_TRUE(Meanwhile([&] {
    return rank(one).links().IsIdle(other) && rank(other).links().IsIdle(one) &&
           !rank(one).links().HasWork() && !rank(other).links().HasWork();
  }));
  for (const uint32_t each : {one, other}) {
    EXPECT_EQ(rank(each).poison(), ErrorCode::kOk);
    EXPECT_TRUE(rank(each).violations().empty());
    EXPECT_TRUE(rank(each).losses().empty());
  }
}

}  // namespace ferry::client
