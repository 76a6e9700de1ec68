// ferryd's end of the rings that it shares with a worker process, whatever the worker writes into
// them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <cstring>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "daemon/worker/worker_channel.h"
#include "internode/staging/staging_pool.h"
#include "shm/atomic.h"
#include "tests/internode/registration/test_registrar.h"

namespace ferry::daemon {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

constexpr uint32_t kCapacity = 8;

class RemoteCopierTest : public testing::Test, protected progress::CopySink {
 protected:
  void SetUp() override {
    staging_ = registrar_.MakePool({4096, 4});
    JobPlan plan;
    plan.node_of_rank = {0, 0};
    plan.local_index = {0, 1};
    channel_ = *WorkerChannel::Create(plan, kCapacity);
    copier_ = std::make_unique<RemoteCopier>(
        channel_, [this](progress::StagingPool& pool, uint32_t number) { shared_[number] = &pool; },
        [this](const std::string& text) { condemned_.push_back(text); });
    copier_->Open(*staging_);
  }

  void OnCopied(const progress::CopyTask& task) override { done_.push_back(task); }

  bool Submit(uint32_t lane = 0, uint64_t block = 0) {
    progress::CopyTask task;
    task.lane = lane;
    task.remote_address = 0x1000;
    task.local = staging_->base() + block * 4096;
    task.size_bytes = 100;
    task.context = reinterpret_cast<void*>(++submitted_);
    return copier_->Submit(task);
  }
  // Returns the id that the worker would read from the command.
  uint64_t IdOfCommand(uint64_t number) const {
    return channel_->commands()[number % kCapacity].id;
  }
  void Answer(uint64_t id, int32_t error) {
    channel_->results()[answers_ % kCapacity] = {id, error, 0};
    shm::StoreRelease(channel_->control()->results_tail, ++answers_);
  }
  uint32_t Collect() { return copier_->Collect(*this); }

  TestRegistrar registrar_;
  std::unique_ptr<progress::StagingPool> staging_;
  std::shared_ptr<WorkerChannel> channel_;
  std::unique_ptr<RemoteCopier> copier_;
  std::map<uint32_t, progress::StagingPool*> shared_;  // by number
  std::vector<std::string> condemned_;
  std::vector<progress::CopyTask> done_;
  uint64_t submitted_ = 0;
  uint64_t answers_ = 0;
};

TEST_F(RemoteCopierTest, HandsTasksOverAndTakesResultsInAnyOrder) {
  EXPECT_EQ(shared_.at(0), staging_.get());
  ASSERT_TRUE(Submit(0, 0));
  ASSERT_TRUE(Submit(1, 3));
  EXPECT_EQ(channel_->control()->commands_tail, 2U);
  EXPECT_EQ(channel_->commands()[1].offset, 3U * 4096);
  EXPECT_EQ(channel_->commands()[1].lane, 1U);
  EXPECT_EQ(Collect(), 0U);
  EXPECT_NE(copier_->silent_since_ns(), 0U);
  Answer(IdOfCommand(1), static_cast<int32_t>(ErrorCode::kOk));
  Answer(IdOfCommand(0), static_cast<int32_t>(ErrorCode::kPeerDied));
  EXPECT_EQ(Collect(), 2U);
  ASSERT_EQ(done_.size(), 2U);
  EXPECT_EQ(done_[0].context, reinterpret_cast<void*>(2));
  EXPECT_EQ(done_[0].result, ErrorCode::kOk);
  EXPECT_EQ(done_[1].result, ErrorCode::kPeerDied);
  EXPECT_EQ(copier_->pending(), 0U);
  EXPECT_EQ(copier_->silent_since_ns(), 0U);
}

TEST_F(RemoteCopierTest, SaysWhichMemoryOfSeveralPoolsAndRegions) {
  const auto other = registrar_.MakePool({8192, 2});
  copier_->Open(*other);
  EXPECT_EQ(shared_.at(1), other.get());
  progress::CopyTask task;
  task.remote_address = 0x20;
  task.region = 77;
  task.local = other->base() + 8192;
  task.size_bytes = 8192;
  ASSERT_TRUE(copier_->Submit(task));
  ASSERT_TRUE(Submit(0, 2));
  const CopyCommand& first = channel_->commands()[0];
  EXPECT_EQ(first.pool, 1U);
  EXPECT_EQ(first.region, 77U);
  EXPECT_EQ(first.offset, 8192U);
  const CopyCommand& second = channel_->commands()[1];
  EXPECT_EQ(second.pool, 0U);
  EXPECT_EQ(second.region, 0U);
  EXPECT_EQ(second.offset, 2U * 4096);
  // A closed table takes no more, and the other one goes on.
  copier_->Close(*other);
  EXPECT_FALSE(copier_->Submit(task));
  EXPECT_TRUE(Submit());
}

TEST_F(RemoteCopierTest, TakesNoMoreThanItHasRoomFor) {
  for (uint32_t i = 0; i < kCapacity; ++i) {
    ASSERT_TRUE(Submit());
  }
  EXPECT_FALSE(Submit());
}

TEST_F(RemoteCopierTest, WakesAWorkerThatSleepsOnce) {
  channel_->control()->sleeping = 1;
  ASSERT_TRUE(Submit());
  EXPECT_EQ(channel_->control()->sleeping, 0U);
  char packet[1024];
  EXPECT_GT(recv(channel_->worker_socket().get(), packet, sizeof(packet), MSG_DONTWAIT), 0);
  ASSERT_TRUE(Submit());
  EXPECT_EQ(recv(channel_->worker_socket().get(), packet, sizeof(packet), MSG_DONTWAIT), -1);
}

TEST_F(RemoteCopierTest, BelievesNoStrangeError) {
  ASSERT_TRUE(Submit());
  Answer(IdOfCommand(0), 12345);
  Collect();
  ASSERT_EQ(done_.size(), 1U);
  EXPECT_EQ(done_[0].result, ErrorCode::kInternal);
}

TEST_F(RemoteCopierTest, CondemnsAResultOfNoTask) {
  ASSERT_TRUE(Submit());
  Answer(IdOfCommand(0) + (uint64_t{1} << 32), 0);
  Collect();
  EXPECT_THAT(condemned_, testing::ElementsAre(HasSubstr("is not under way")));
  EXPECT_THAT(done_, IsEmpty());
  Collect();  // it counts as failed
  ASSERT_EQ(done_.size(), 1U);
  EXPECT_EQ(done_[0].result, ErrorCode::kWorkerDied);
}

TEST_F(RemoteCopierTest, CondemnsTheSameResultTwice) {
  ASSERT_TRUE(Submit());
  const uint64_t id = IdOfCommand(0);
  Answer(id, 0);
  Answer(id, 0);
  Collect();
  EXPECT_EQ(done_.size(), 1U);
  EXPECT_EQ(condemned_.size(), 1U);
}

TEST_F(RemoteCopierTest, CondemnsARingOfMoreResultsThanItHolds) {
  channel_->control()->results_tail = kCapacity + 1;
  Collect();
  EXPECT_THAT(condemned_, testing::ElementsAre(HasSubstr("ring of results")));
}

TEST_F(RemoteCopierTest, EndsAllWhenTheWorkerFails) {
  ASSERT_TRUE(Submit(0));
  ASSERT_TRUE(Submit(1));
  copier_->Fail();
  EXPECT_EQ(Collect(), 2U);
  ASSERT_EQ(done_.size(), 2U);
  EXPECT_EQ(done_[1].result, ErrorCode::kWorkerDied);
  EXPECT_EQ(copier_->pending(), 0U);
}

// The rank goes; its block is used again only after the worker is done with it.
TEST_F(RemoteCopierTest, AbandonsCopiesWithoutWaiting) {
  progress::StagingBlock* block = staging_->Take(progress::StagingUse::kOutgoing, 0);
  const uint64_t index = static_cast<uint64_t>(block->base - staging_->base()) / 4096;
  ASSERT_TRUE(Submit(0, index));
  ASSERT_TRUE(Submit(1, 1));
  const uint32_t busy = staging_->busy();
  EXPECT_TRUE(copier_->Abandon(0, *this));
  ASSERT_EQ(done_.size(), 1U);
  EXPECT_TRUE(done_[0].abandoned);
  EXPECT_EQ(done_[0].result, ErrorCode::kCancelled);
  EXPECT_EQ(copier_->pending(), 1U);
  EXPECT_EQ(staging_->busy(), busy);
  Answer(IdOfCommand(0), 0);
  Collect();
  EXPECT_EQ(done_.size(), 1U);
  EXPECT_EQ(staging_->busy(), busy - 1);
  EXPECT_THAT(condemned_, IsEmpty());
}

// A worker writes anything anywhere, from a fixed seed: every task ends once, there is at most one
// condemnation each time, and nothing outside the tables is touched (see under AddressSanitizer).
TEST_F(RemoteCopierTest, SurvivesAnyContentsOfTheSharedMemory) {
  std::mt19937_64 random(20240517);
  for (int round = 0; round < 2000; ++round) {
    SetUp();
    condemned_.clear();
    done_.clear();
    submitted_ = answers_ = 0;
    std::byte* shared = reinterpret_cast<std::byte*>(channel_->control());
    const uint64_t size_bytes = channel_->control_bytes();
    for (int step = 0; step < 30; ++step) {
      switch (random() % 6) {
        case 0:
        case 1:
          Submit(static_cast<uint32_t>(random() % 2), random() % 4);
          break;
        case 2:
          Answer(random() % 2 == 0 ? IdOfCommand(random()) : random(),
                 static_cast<int32_t>(random()));
          break;
        case 3:
          channel_->control()->results_tail += random() % 3;
          break;
        case 4:
          if (random() % 4 == 0) {
            copier_->Abandon(static_cast<uint32_t>(random() % 2), *this);
          }
          break;
        default:
          for (int i = 0; i < 8; ++i) {
            const uint64_t junk = random();
            std::memcpy(shared + random() % (size_bytes / 8) * 8, &junk, 8);
          }
      }
      Collect();
    }
    copier_->Fail();
    Collect();
    EXPECT_EQ(copier_->pending(), 0U);
    std::map<void*, int> times;
    for (const progress::CopyTask& task : done_) {
      ++times[task.context];
    }
    for (const auto& [context, count] : times) {
      EXPECT_EQ(count, 1);
    }
    EXPECT_LE(condemned_.size(), 1U);
  }
}

}  // namespace
}  // namespace ferry::daemon
