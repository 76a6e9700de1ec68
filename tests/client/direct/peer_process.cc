#include "tests/client/direct/peer_process.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <utility>

#include "tests/client/direct/links_fixture.h"

namespace ferry::client {

namespace {

constexpr uint64_t kKeys[2] = {0x1111, 0x2222};  // of what each rank sends

std::array<UniqueFd, 2> MakePair() {
  int fds[2] = {-1, -1};
  EXPECT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds), 0);
  return {UniqueFd(fds[0]), UniqueFd(fds[1])};
}

void Say(int control, const void* words, size_t bytes) {
  EXPECT_EQ(send(control, words, bytes, MSG_NOSIGNAL), static_cast<ssize_t>(bytes));
}

void Hear(int control, void* words, size_t bytes) {
  EXPECT_EQ(recv(control, words, bytes, 0), static_cast<ssize_t>(bytes));
}

// Sets up the link as the daemons would. Both have routes before either uses the link.
void SetUp(LinkedRank& rank, int control) {
  const uint32_t own = rank.rank();
  const uint32_t peer = 1 - own;
  rank.OpenLinks();
  ASSERT_TRUE(rank.has_links());
  LinkAddress address = rank.links().AddressFor(peer);
  Say(control, &address, sizeof(address));
  Hear(control, &address, sizeof(address));
  const Status status = rank.Connect(peer, RouteTo(address, kKeys[own], kKeys[peer]));
  ASSERT_TRUE(status.ok()) << status.ToString();
  char word = 1;
  Say(control, &word, sizeof(word));
  Hear(control, &word, sizeof(word));
  ASSERT_TRUE(Eventually([&] {
    (void)rank.Progress();
    return rank.ConnectionTo(peer, /*calls=*/own == 0) == ErrorCode::kOk;
  }));
  ASSERT_EQ(rank.UseLink(peer), ErrorCode::kOk);
  ASSERT_TRUE(Eventually([&] {
    (void)rank.Progress();
    return rank.engine().paths().PathTo(peer) == shm::PeerPath::kLink;
  }));
  // The other one may need this one's daemon for its own.
  Say(control, &word, sizeof(word));
  ASSERT_TRUE(Eventually([&] {
    (void)rank.Progress();
    return recv(control, &word, sizeof(word), MSG_DONTWAIT) == sizeof(word);
  }));
}

int Run(const std::function<void(LinkedRank& rank)>& body, const RankOptions& options, int daemon,
        int control) {
  LinkedRank rank(1, 2, {daemon, -1}, options);
  SetUp(rank, control);
  if (!testing::Test::HasFailure()) {
    body(rank);
  }
  return testing::Test::HasFailure() ? 1 : 0;
}

}  // namespace

LinkedProcess::LinkedProcess(std::function<void(LinkedRank& rank)> body,
                             const RankOptions& options) {
  std::array<UniqueFd, 2> daemons = MakePair();
  std::array<UniqueFd, 2> control = MakePair();
  child_ = fork();
  if (child_ == 0) {
    daemons[0].Reset();
    control[0].Reset();
    _exit(Run(body, options, daemons[1].get(), control[1].get()));
  }
  daemon_ = std::move(daemons[0]);
  control_ = std::move(control[0]);
  daemons[1].Reset();
  control[1].Reset();
  rank_ = std::make_unique<LinkedRank>(0, 2, std::vector<int>{-1, daemon_.get()}, options);
  SetUp(*rank_, control_.get());
}

LinkedProcess::~LinkedProcess() {
  if (child_ > 0) {
    Kill();
  }
}

void LinkedProcess::Kill() {
  (void)kill(child_, SIGKILL);
  (void)waitpid(std::exchange(child_, -1), nullptr, 0);
}

int LinkedProcess::Join() {
  int status = 0;
  EXPECT_TRUE(Eventually([&] {
    (void)rank_->Progress();
    return waitpid(child_, &status, WNOHANG) == child_;
  }));
  child_ = -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

ErrorCode WaitFor(LinkedRank& rank, uint32_t request) {
  EXPECT_TRUE(Eventually([&] {
    (void)rank.Progress();
    return rank.Test(request);
  })) << "rank "
      << rank.rank() << " waits for ever for request " << request;
  return rank.Finish(request);
}

}  // namespace ferry::client
