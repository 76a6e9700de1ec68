// The modelled time of streams over an emulated link. All of it lies in the past of the real clock,
// so nothing sleeps and every figure is exact.
#include "gpu_backends/host/stream_worker.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "common/clock.h"
#include "gpu_backends/api/stream_watch.h"

namespace ferry::gpu {
namespace {

constexpr LinkRoute kIn{LinkRoute::kHost, 0, false};
constexpr LinkRoute kOut{0, LinkRoute::kHost, false};
constexpr uint64_t kSize = 1000;
constexpr uint64_t kCopyNs = 11'000;  // 10 us of start-up, 1 us at 1000 MB/s

class StreamWorkerTest : public testing::Test {
 protected:
  static HostLinkOptions Options() {
    return {.h2d_mb_per_s = 1000, .d2h_mb_per_s = 1000, .latency_us = 10, .engines = 2};
  }

  void Copy(StreamWorker& stream, const LinkRoute& route, uint64_t enqueued_ns) {
    const CopyOperation copy{to_.data(), from_.data(), kSize, route, enqueued_ns};
    ASSERT_TRUE(stream.Enqueue(copy).ok());
  }

  static std::shared_ptr<Completion> Record(StreamWorker& stream) {
    auto completion = std::make_shared<Completion>();
    EXPECT_TRUE(stream.Enqueue(RecordOperation{completion}).ok());
    return completion;
  }

  // The modelled time at which `stream` gets to the next enqueued operation.
  static uint64_t ReachedNs(StreamWorker& stream) {
    const std::shared_ptr<Completion> completion = Record(stream);
    EXPECT_TRUE(completion->Wait().ok());
    return completion->reached_ns();
  }

  EmulatedLink link_{Options(), 1};
  std::vector<uint8_t> from_ = std::vector<uint8_t>(kSize, 7);
  std::vector<uint8_t> to_ = std::vector<uint8_t>(kSize, 0);
};

TEST_F(StreamWorkerTest, QueuedCopiesFollowEachOtherHoweverLateTheThreadIs) {
  StreamWorker stream(0, &link_, {});
  for (int i = 0; i < 10; ++i) {
    Copy(stream, kIn, 500);
  }
  EXPECT_EQ(ReachedNs(stream), 500 + 10 * kCopyNs);
  EXPECT_EQ(to_, from_);
}

TEST_F(StreamWorkerTest, ACopyDoesNotBeginBeforeItIsEnqueued) {
  StreamWorker stream(0, &link_, {});
  Copy(stream, kIn, 500);
  Copy(stream, kIn, 90'000);
  EXPECT_EQ(ReachedNs(stream), 90'000 + kCopyNs);
}

TEST_F(StreamWorkerTest, ACopyWaitsForItsEngine) {
  StreamWorker first(0, &link_, {});
  StreamWorker second(0, &link_, {});
  Copy(first, kIn, 500);
  ASSERT_EQ(ReachedNs(first), 500 + kCopyNs);
  Copy(second, kIn, 600);
  EXPECT_EQ(ReachedNs(second), 500 + 2 * kCopyNs);
  Copy(second, kOut, 700);  // the other engine is free, but the stream is not
  EXPECT_EQ(ReachedNs(second), 500 + 3 * kCopyNs);
}

TEST_F(StreamWorkerTest, EventsCarryTheModelledTimeToOtherStreams) {
  StreamWorker first(0, &link_, {});
  StreamWorker second(0, &link_, {});
  Copy(first, kOut, 500);
  const std::shared_ptr<Completion> event = Record(first);
  ASSERT_TRUE(second.Enqueue(WaitEventOperation{event}).ok());
  Copy(second, kIn, 0);
  EXPECT_EQ(ReachedNs(second), 500 + 2 * kCopyNs);
}

TEST_F(StreamWorkerTest, WorkOutsideTheModelTakesRealTime) {
  const uint64_t before_ns = MonotonicNs();
  StreamWorker host(0, &link_, {});
  ASSERT_TRUE(host.Enqueue(HostOperation{[] { return Status(); }}).ok());
  EXPECT_GE(ReachedNs(host), before_ns);

  alignas(8) uint64_t word = 1;
  StreamWorker waiting(0, &link_, {});
  ASSERT_TRUE(waiting.Enqueue(WaitValueOperation{&word, 1, WaitCondition::kGreaterOrEqual}).ok());
  EXPECT_GE(ReachedNs(waiting), before_ns);
}

TEST_F(StreamWorkerTest, WithoutALinkThereIsNoModelledTime) {
  StreamWorker stream(0, nullptr, {});
  Copy(stream, kIn, 500);
  ASSERT_TRUE(stream.Enqueue(HostOperation{[] { return Status(); }}).ok());
  EXPECT_EQ(ReachedNs(stream), 0u);
  EXPECT_EQ(to_, from_);
}

TEST_F(StreamWorkerTest, CopiesEndNotBeforeTheirTime) {
  StreamWorker stream(0, &link_, {});
  const uint64_t enqueued_ns = MonotonicNs() + 200'000;
  Copy(stream, kIn, enqueued_ns);
  ASSERT_TRUE(stream.Synchronize().ok());
  EXPECT_GE(MonotonicNs(), enqueued_ns + kCopyNs);
}

// Each wake-up would cost more than the operation that it tells of.
TEST_F(StreamWorkerTest, WhoSynchronisesSleepsUntilAllIsDone) {
  constexpr int kOperations = 2000;
  StreamWorker stream(0, nullptr, {});
  std::atomic<bool> is_open{false};
  ASSERT_TRUE(stream
                  .Enqueue(HostOperation{[&] {
                    while (!is_open.load(std::memory_order_acquire)) {
                      std::this_thread::yield();
                    }
                    return Status();
                  }})
                  .ok());
  for (int i = 0; i < kOperations; ++i) {
    ASSERT_TRUE(stream
                    .Enqueue(HostOperation{[] {
                      std::this_thread::yield();  // a thread that was woken could run now
                      return Status();
                    }})
                    .ok());
  }
  const auto sleeps = [] {
    rusage usage{};
    getrusage(RUSAGE_THREAD, &usage);
    return usage.ru_nvcsw;
  };
  const long before = sleeps();
  is_open.store(true, std::memory_order_release);
  ASSERT_TRUE(stream.Synchronize().ok());
  EXPECT_LT(sleeps() - before, 20);
}

TEST_F(StreamWorkerTest, SeveralThreadsSynchroniseWithWhatEachHasEnqueued) {
  constexpr int kThreads = 4;
  StreamWorker stream(0, nullptr, {});
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&stream] {
      for (int i = 0; i < 500; ++i) {
        bool done = false;
        ASSERT_TRUE(stream
                        .Enqueue(HostOperation{[&done] {
                          done = true;
                          return Status();
                        }})
                        .ok());
        ASSERT_TRUE(stream.Synchronize().ok());
        ASSERT_TRUE(done);
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
}

// ---- Watchers -----------------------------------------------------------------------------------

class Watcher final : public StreamWatcher {
 public:
  struct Done {
    uint32_t stream;
    StreamWork work;
    uint64_t bytes;
    uint64_t begin_ns;
  };
  ~Watcher() { is_gone_.store(true); }

  void NoteDone(uint32_t stream, StreamWork work, uint64_t bytes, uint64_t begin_ns) override {
    EXPECT_FALSE(is_gone_.load());
    const std::lock_guard lock(mutex_);
    done_.push_back({stream, work, bytes, begin_ns});
  }
  std::vector<Done> done() {
    const std::lock_guard lock(mutex_);
    return done_;
  }

 private:
  std::atomic<bool> is_gone_{false};
  std::mutex mutex_;
  std::vector<Done> done_;
};

TEST_F(StreamWorkerTest, AWatcherHearsOfWhatTakesTime) {
  StreamWorker stream(0, nullptr, {});
  StreamWorker other(0, nullptr, {});
  Copy(stream, kIn, 0);
  ReachedNs(stream);
  const uint64_t begin_ns = MonotonicNs();
  Watcher watcher;
  SetStreamWatcher(&watcher);
  Copy(stream, kIn, 0);
  uint64_t word = 0;
  ASSERT_TRUE(stream.Enqueue(WriteOperation{&word, 1}).ok());
  ASSERT_TRUE(stream.Enqueue(HostOperation{[] { return Status(); }}).ok());
  ReachedNs(stream);
  ASSERT_TRUE(other.Enqueue(WaitValueOperation{&word, 1, WaitCondition::kEqual}).ok());
  ReachedNs(other);
  SetStreamWatcher(nullptr);
  Copy(stream, kIn, 0);
  ReachedNs(stream);
  const std::vector<Watcher::Done> done = watcher.done();
  ASSERT_EQ(done.size(), 3U);
  EXPECT_EQ(done[0].work, StreamWork::kCopy);
  EXPECT_EQ(done[0].bytes, kSize);
  EXPECT_GE(done[0].begin_ns, begin_ns);
  EXPECT_EQ(done[1].work, StreamWork::kHostCall);
  EXPECT_EQ(done[1].stream, done[0].stream);
  EXPECT_GE(done[1].begin_ns, done[0].begin_ns);
  EXPECT_EQ(done[2].work, StreamWork::kValueWait);
  EXPECT_NE(done[2].stream, done[0].stream);
}

TEST_F(StreamWorkerTest, NobodyHearsOfItAfterwards) {
  StreamWorker stream(0, nullptr, {});
  for (int round = 0; round < 1000; ++round) {
    Watcher watcher;
    SetStreamWatcher(&watcher);
    for (int i = 0; i < 4; ++i) {
      Copy(stream, kIn, 0);
    }
    SetStreamWatcher(nullptr);
  }
  ReachedNs(stream);
}

}  // namespace
}  // namespace ferry::gpu
