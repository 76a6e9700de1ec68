#include "transports/ofi/epoll_watch.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

#include <algorithm>

namespace ferry::transport {
namespace {

bool IsReadable(int fd) {
  pollfd descriptor{fd, POLLIN, 0};
  return poll(&descriptor, 1, /*timeout_ms=*/0) == 1;
}

// An epoll instance that waits for an eventfd.
struct Instance {
  Instance() {
    epoll_event interest{};
    interest.events = EPOLLIN;
    epoll_ctl(epoll.get(), EPOLL_CTL_ADD, event.get(), &interest);
  }
  UniqueFd event{eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
  UniqueFd epoll{epoll_create1(EPOLL_CLOEXEC)};
};

TEST(EpollWatchTest, FindsTheInstancesOfThisProcess) {
  const std::vector<int> before = EpollInstances();
  const Instance made;
  const std::vector<int> after = EpollInstances();
  EXPECT_EQ(std::ranges::count(before, made.epoll.get()), 0);
  EXPECT_EQ(std::ranges::count(after, made.epoll.get()), 1);
  EXPECT_EQ(std::ranges::count(after, made.event.get()), 0);
}

TEST(EpollWatchTest, IsReadableWhileANewInstanceIs) {
  const Instance old;
  const std::vector<int> before = EpollInstances();
  const Instance first;
  const Instance second;
  const UniqueFd watch = WatchInstances(EpollInstances(), before);
  ASSERT_TRUE(watch.valid());
  eventfd_write(old.event.get(), 1);
  EXPECT_FALSE(IsReadable(watch.get()));
  eventfd_write(second.event.get(), 1);
  EXPECT_TRUE(IsReadable(watch.get()));
  eventfd_t count = 0;
  eventfd_read(second.event.get(), &count);
  EXPECT_FALSE(IsReadable(watch.get()));
}

TEST(EpollWatchTest, WatchesNothingWhenNothingIsNew) {
  const std::vector<int> instances = EpollInstances();
  EXPECT_FALSE(WatchInstances(instances, instances).valid());
}

}  // namespace
}  // namespace ferry::transport
