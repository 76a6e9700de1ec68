// Two engines serve one session, as the rank and the progress worker do: each takes the lease,
// progresses, and releases, while a peer's engine sends from a third thread.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "shm/atomic.h"
#include "shm/lease.h"
#include "tests/engine/rank_fixture.h"

namespace ferry::engine {
namespace {

using shm::RequestState;

constexpr uint32_t kHolder = 11;  // any id that is not the worker's

// Progress under the lease; returns what was handled, 0 if the lease was taken.
uint32_t ProgressUnderLease(TestRank& runner, uint32_t holder) {
  shm::Lease lease(&runner.view().layout->lease);
  if (!lease.TryAcquire(holder)) {
    return 0;
  }
  Effects effects;
  const uint32_t handled = runner.engine().Progress(effects);
  lease.Release(holder);
  runner.Perform(effects);
  return handled;
}

class Underway {
 public:
  template <typename Body>
  explicit Underway(Body body)
      : thread_([this, body] {
          while (!over_.load()) {
            if (!body()) {
              std::this_thread::yield();
            }
          }
        }) {}
  ~Underway() {
    over_.store(true);
    thread_.join();
  }

 private:
  std::atomic<bool> over_{false};
  std::thread thread_;
};

TEST(RankEngineRunnersTest, EveryMessageArrivesOnceInOrder) {
  constexpr uint32_t kMessages = 3000;
  TestNode node(NodeOptions{.request_limit = 4096, .unexpected_limit = 4096});
  TestRank worker(node, 1, Runner::kWorker);
  shm::Lease lease(&node.view(1).layout->lease);
  std::atomic<bool> received{false};
  const auto message = [](uint32_t i) {
    constexpr uint64_t kSizes[] = {8, 8, 8, 100, 8, 5000, 8, 12'000};
    return Pattern(kSizes[i % std::size(kSizes)], i);
  };

  std::thread sender([&] {
    std::vector<uint32_t> sends;
    for (uint32_t i = 0; i < kMessages; ++i) {
      sends.push_back(node[0].Isend(1, 7, message(i)));
      while (node[0].engine().WaitsForRoom()) {
        node[0].Progress();
        std::this_thread::yield();
      }
      if (sends.size() > 64) {
        while (!node[0].Test(sends.front())) {
          node[0].Progress();
          std::this_thread::yield();
        }
        EXPECT_EQ(node[0].Finish(sends.front()).error, ErrorCode::kOk);
        sends.erase(sends.begin());
      }
    }
    while (!received.load()) {
      node[0].Progress();
      std::this_thread::yield();
    }
  });
  {
    const Underway working([&] { return ProgressUnderLease(worker, shm::kLeaseWorker) != 0; });
    for (uint32_t i = 0; i < kMessages; ++i) {
      ASSERT_TRUE(lease.Acquire(kHolder));
      const uint32_t receive = node[1].Irecv(i % 3 == 0 ? shm::kAnySource : 0, 7, 12'000);
      lease.Release(kHolder);
      while (!node[1].Test(receive)) {
        if (ProgressUnderLease(node[1], kHolder) == 0) {
          std::this_thread::yield();
        }
      }
      ASSERT_EQ(node[1].Finish(receive).data, message(i)) << "message " << i;
    }
    received.store(true);
  }
  sender.join();
  EXPECT_EQ(node[1].poison(), ErrorCode::kOk);
  EXPECT_FALSE(node[1].engine().HasArrivals());
}

TEST(RankEngineRunnersTest, CreditsFlowWhoeverDrains) {
  // The daemon sends as a remote peer may: never more than the window ahead of the credits.
  constexpr uint32_t kMessages = 5000;
  TestNode node(NodeOptions{.local_ranks = 1, .remote_ranks = 1, .unexpected_limit = 8192});
  TestRank worker(node, 0, Runner::kWorker);
  std::atomic<uint32_t> sent{0};
  std::thread daemon([&] {
    FakeDaemon daemon(node.view(0));
    uint32_t credited = 0;
    while (sent.load() < kMessages) {
      for (const shm::Descriptor& descriptor : daemon.Take()) {
        credited += PayloadOf<shm::CreditReturn>(descriptor).count;
      }
      ASSERT_LE(credited, sent.load());
      if (sent.load() - credited < kRemoteWindow &&
          daemon.Eager(1, 7, std::to_string(sent.load()))) {
        ++sent;
      } else {
        std::this_thread::yield();
      }
    }
  });
  {
    const Underway working([&] { return ProgressUnderLease(worker, shm::kLeaseWorker) != 0; });
    while (sent.load() < kMessages || node[0].engine().HasArrivals()) {
      if (ProgressUnderLease(node[0], kHolder) == 0) {
        std::this_thread::yield();
      }
    }
  }
  daemon.join();
  for (uint32_t i = 0; i < kMessages; ++i) {
    ASSERT_EQ(node[0].Receive(1, 7, 16).data, std::to_string(i));
  }
}

TEST(RankEngineRunnersTest, QueuedSendsLeaveOnceWhoeverFlushes) {
  constexpr uint32_t kMessages = 3000;
  TestNode node(NodeOptions{.request_limit = kMessages + 10, .unexpected_limit = 4096});
  TestRank worker(node, 0, Runner::kWorker);
  std::atomic<bool> received{false};
  std::thread receiver([&] {
    for (uint32_t i = 0; i < kMessages; ++i) {
      const uint32_t receive = node[1].Irecv(0, 7, 12'000);
      while (!node[1].Test(receive)) {
        node[1].Progress();
        std::this_thread::yield();
      }
      ASSERT_EQ(node[1].Finish(receive).data, Pattern(i % 7 == 0 ? 12'000 : 8, i));
    }
    received.store(true);
  });
  shm::Lease lease(&node.view(0).layout->lease);
  std::vector<uint32_t> sends;
  {
    const Underway working([&] { return ProgressUnderLease(worker, shm::kLeaseWorker) != 0; });
    for (uint32_t i = 0; i < kMessages; ++i) {
      ASSERT_TRUE(lease.Acquire(kHolder));
      sends.push_back(node[0].Isend(1, 7, Pattern(i % 7 == 0 ? 12'000 : 8, i)));
      lease.Release(kHolder);
    }
    while (!received.load()) {
      if (ProgressUnderLease(node[0], kHolder) == 0) {
        std::this_thread::yield();
      }
    }
  }
  receiver.join();
  for (const uint32_t send : sends) {
    EXPECT_TRUE(node[0].Test(send));
    EXPECT_EQ(node[0].Finish(send).error, ErrorCode::kOk);
  }
  EXPECT_EQ(node.view(0).layout->queued_sends, 0U);
}

}  // namespace
}  // namespace ferry::engine
