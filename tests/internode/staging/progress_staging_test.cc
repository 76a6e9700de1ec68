#include <gtest/gtest.h>
#include <sched.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <set>
#include <string>
#include <vector>

#include "daemon/staging/copy_pool.h"
#include "internode/staging/staging_depot.h"
#include "internode/staging/staging_pool.h"
#include "shm/layout/lane_layout.h"
#include "shm/segment.h"
#include "tests/internode/registration/test_registrar.h"

namespace ferry::daemon {
namespace {

// ---- Staging pool ------------------------------------------------------------------------------

class StagingPoolTest : public testing::Test {
 protected:
  std::unique_ptr<progress::StagingPool> Create(uint32_t blocks) {
    return registrar_.MakePool({4096, blocks});
  }

  TestRegistrar registrar_;
  FakeTransport& transport_ = registrar_.transport();
};

TEST_F(StagingPoolTest, HalvesItsBlocksBetweenTheDirections) {
  const auto pool = Create(4);
  std::set<std::byte*> bases;
  for (const progress::StagingUse use :
       {progress::StagingUse::kOutgoing, progress::StagingUse::kIncoming}) {
    for (int i = 0; i < 2; ++i) {
      EXPECT_TRUE(pool->HasFree(use));
      progress::StagingBlock* block = pool->Take(use, 0);
      ASSERT_NE(block, nullptr);
      EXPECT_TRUE(bases.insert(block->base).second);
      block->base[4095] = std::byte{1};
    }
    EXPECT_FALSE(pool->HasFree(use));
    EXPECT_EQ(pool->Take(use, 0), nullptr);
  }
  EXPECT_EQ(pool->busy(), 4U);
}

TEST_F(StagingPoolTest, LetsPeersReadOnlyWhatLeaves) {
  const auto pool = Create(2);
  EXPECT_EQ(
      transport_.AccessOf(pool->Take(progress::StagingUse::kOutgoing, 0)->pinned.region().handle),
      transport::Access::kRemoteRead);
  EXPECT_EQ(
      transport_.AccessOf(pool->Take(progress::StagingUse::kIncoming, 0)->pinned.region().handle),
      transport::Access::kLocal);
}

TEST_F(StagingPoolTest, UsesATaintedBlockAgainOnceTheNicHasLetGoAndUnderAnotherKey) {
  const auto pool = Create(2);
  progress::StagingBlock* block = pool->Take(progress::StagingUse::kOutgoing, 0);
  const uint64_t key = block->pinned.region().key;
  transport_.Hold(block->pinned.region().handle);
  pool->GiveTainted(block);
  pool->Recycle();
  EXPECT_EQ(pool->Take(progress::StagingUse::kOutgoing, 0), nullptr);
  EXPECT_TRUE(pool->has_tainted());
  transport_.LetGo();
  pool->Recycle();
  registrar_.Collect();
  EXPECT_FALSE(pool->has_tainted());
  ASSERT_EQ(pool->Take(progress::StagingUse::kOutgoing, 0), block);
  EXPECT_NE(block->pinned.region().key, key);
}

TEST_F(StagingPoolTest, SaysWhatIsWrongWithOneBlock) {
  const auto pool = progress::StagingPool::Create(*registrar_, {4096, 1});
  ASSERT_FALSE(pool.ok());
  EXPECT_EQ(pool.status().code(), ErrorCode::kInvalidArgument);
  EXPECT_NE(pool.status().message().find("staging_blocks is 1"), std::string::npos);
}

TEST_F(StagingPoolTest, PassesOnWhyTheNicRefusesMemory) {
  transport_.RefuseMemory();
  const auto pool = Create(2);
  EXPECT_EQ(pool->failure().code(), ErrorCode::kLimitExceeded);
}

TEST_F(StagingPoolTest, LendsCellsThatTheNetworkDoesNotKnow) {
  const auto pool = Create(2);
  std::set<std::byte*> cells;
  while (std::byte* cell = pool->TakeCell()) {
    EXPECT_TRUE(cells.insert(cell).second);
    cell[shm::kCellBytes - 1] = std::byte{1};
  }
  EXPECT_EQ(cells.size() + 2, pool->fragments());
  pool->Return(*cells.begin());
  EXPECT_EQ(pool->TakeCell(), *cells.begin());
}

TEST_F(StagingPoolTest, TakesBlocksBackByTheirMemory) {
  const auto pool = Create(4);
  pool->Take(progress::StagingUse::kIncoming, 0);
  progress::StagingBlock* block = pool->Take(progress::StagingUse::kIncoming, 0);
  EXPECT_FALSE(pool->HasFree(progress::StagingUse::kIncoming));
  pool->Return(block->base);
  EXPECT_EQ(pool->Take(progress::StagingUse::kIncoming, 0), block);
}

TEST_F(StagingPoolTest, IsASealedMemfdForTheJobsWorker) {
  const auto pool = Create(2);
  const auto mapped = shm::MapSegment(pool->fd()->get(), pool->size_bytes());
  ASSERT_TRUE(mapped.ok()) << mapped.status().ToString();
  progress::StagingBlock* block = pool->Take(progress::StagingUse::kOutgoing, 0);
  block->base[0] = std::byte{7};
  EXPECT_EQ(mapped->base()[block->base - pool->base()], std::byte{7});
}

// ---- Registered by another thread --------------------------------------------------------------

class PinnedPoolTest : public StagingPoolTest {
 protected:
  void SetUp() override {
    auto pool = progress::StagingPool::Create(*registrar_, {4096, 4});
    ASSERT_TRUE(pool.ok()) << pool.status().ToString();
    pool_ = std::move(*pool);
  }
  void Collect() { registrar_.Collect(); }

  std::unique_ptr<progress::StagingPool> pool_;
};

TEST_F(PinnedPoolTest, LendsNothingUntilAllIsRegistered) {
  EXPECT_FALSE(pool_->HasFree(progress::StagingUse::kOutgoing));
  EXPECT_NE(pool_->TakeCell(), nullptr);
  EXPECT_EQ(pool_->busy(), 0U);
}

TEST_F(PinnedPoolTest, MayEndBeforeThat) {
  pool_.reset();
  Collect();
  EXPECT_EQ(transport_.regions(), 0U);
}

TEST_F(PinnedPoolTest, LendsAllThen) {
  Collect();
  EXPECT_TRUE(pool_->failure().ok());
  for (const progress::StagingUse use :
       {progress::StagingUse::kOutgoing, progress::StagingUse::kIncoming}) {
    EXPECT_NE(pool_->Take(use, 0), nullptr);
    EXPECT_NE(pool_->Take(use, 0), nullptr);
    EXPECT_EQ(pool_->Take(use, 0), nullptr);
  }
}

TEST_F(PinnedPoolTest, ATaintedBlockGetsItsNewKeyThere) {
  Collect();
  progress::StagingBlock* block = pool_->Take(progress::StagingUse::kOutgoing, 0);
  progress::StagingBlock* other = pool_->Take(progress::StagingUse::kOutgoing, 0);
  const uint64_t key = block->pinned.region().key;
  transport_.RefuseMemory();
  pool_->GiveTainted(block);
  EXPECT_EQ(pool_->Take(progress::StagingUse::kOutgoing, 0), nullptr);
  Collect();
  pool_->GiveTainted(other);  // the registrar tries both
  EXPECT_EQ(registrar_->pending(), 2U);
  Collect();
  EXPECT_TRUE(pool_->has_tainted());
  transport_.RefuseMemory(false);
  pool_->Recycle();
  Collect();
  EXPECT_FALSE(pool_->has_tainted());
  progress::StagingBlock* again = pool_->Take(progress::StagingUse::kOutgoing, 0);
  ASSERT_NE(again, nullptr);
  EXPECT_NE(again->pinned.region().key, key);
}

TEST_F(PinnedPoolTest, ARefusalIsToldAndTriedAgainOnlyWhenItIsWantedAgain) {
  transport_.RefuseMemory();
  pool_ = Create(2);
  EXPECT_EQ(pool_->failure().code(), ErrorCode::kLimitExceeded);
  EXPECT_FALSE(pool_->HasFree(progress::StagingUse::kIncoming));
  pool_->Forgive();
  transport_.RefuseMemory(false);
  pool_->Recycle();
  EXPECT_EQ(registrar_->pending(), 0U);
  pool_->PinAll();
  Collect();
  EXPECT_TRUE(pool_->HasFree(progress::StagingUse::kIncoming));
}

TEST_F(PinnedPoolTest, IsExhaustedEvenIfThatComesFirst) {
  pool_->Exhaust();
  Collect();
  EXPECT_FALSE(pool_->HasFree(progress::StagingUse::kOutgoing));
  pool_->Replenish();
  EXPECT_TRUE(pool_->HasFree(progress::StagingUse::kOutgoing));
}

// ---- Growing and shrinking ---------------------------------------------------------------------

class GrowingPoolTest : public testing::Test {
 protected:
  static constexpr uint64_t kBlockBytes = 64 << 10;
  static constexpr uint64_t kIdleNs = 1000;

  void SetUp() override { pool_ = registrar_.MakePool({kBlockBytes, 16, 4, kIdleNs}); }
  void Collect() { registrar_.Collect(); }
  std::vector<progress::StagingBlock*> TakeAll(progress::StagingUse use) {
    std::vector<progress::StagingBlock*> taken;
    while (progress::StagingBlock* block = pool_->Take(use, 0)) {
      memset(block->base, 1, kBlockBytes);
      taken.push_back(block);
    }
    return taken;
  }
  // Takes all blocks, and begins to grow for a transfer that waits.
  std::vector<progress::StagingBlock*> BeginToGrowFor(progress::StagingUse use) {
    std::vector<progress::StagingBlock*> taken = TakeAll(use);
    pool_->waiters(use).Push(0, 1);
    pool_->Grow();
    return taken;
  }
  // As BeginToGrowFor, and waits until the pool has grown.
  std::vector<progress::StagingBlock*> GrowFor(progress::StagingUse use) {
    std::vector<progress::StagingBlock*> taken = BeginToGrowFor(use);
    Collect();
    pool_->waiters(use).PopAll();
    return taken;
  }
  void GiveAll(const std::vector<progress::StagingBlock*>& blocks) {
    for (progress::StagingBlock* block : blocks) {
      pool_->Give(block);
    }
  }
  // The pool's memory that the system has backed.
  uint64_t ResidentBytes() const {
    struct stat status {};
    EXPECT_EQ(fstat(pool_->fd()->get(), &status), 0);
    return static_cast<uint64_t>(status.st_blocks) * 512;
  }

  TestRegistrar registrar_;
  FakeTransport& transport_ = registrar_.transport();
  std::unique_ptr<progress::StagingPool> pool_;
};

TEST_F(GrowingPoolTest, BeginsWithTheLeast) {
  EXPECT_EQ(pool_->blocks(), 4U);
  EXPECT_EQ(pool_->most_blocks(), 16U);
  EXPECT_EQ(transport_.regions(), 4U);
  EXPECT_EQ(TakeAll(progress::StagingUse::kOutgoing).size(), 2U);
  EXPECT_EQ(TakeAll(progress::StagingUse::kIncoming).size(), 2U);
  EXPECT_FALSE(pool_->has_spare());
}

TEST_F(GrowingPoolTest, GrowsOnlyWhileSomebodyWaitsAndNothingIsFree) {
  pool_->Grow();
  pool_->waiters(progress::StagingUse::kOutgoing).Push(0, 1);
  pool_->Grow();  // there are free blocks
  EXPECT_EQ(registrar_->pending(), 0U);
  TakeAll(progress::StagingUse::kOutgoing);
  pool_->waiters(progress::StagingUse::kOutgoing).PopAll();
  pool_->Grow();  // no transfer waits
  EXPECT_EQ(registrar_->pending(), 0U);
}

TEST_F(GrowingPoolTest, DoublesTheHalfThatIsWantedUpToItsPart) {
  GrowFor(progress::StagingUse::kOutgoing);
  EXPECT_EQ(pool_->blocks(), 6U);
  EXPECT_EQ(GrowFor(progress::StagingUse::kOutgoing).size(), 2U);
  EXPECT_EQ(pool_->blocks(), 10U);
  EXPECT_EQ(GrowFor(progress::StagingUse::kOutgoing).size(), 4U);
  EXPECT_EQ(GrowFor(progress::StagingUse::kOutgoing).size(), 0U);
  EXPECT_EQ(pool_->blocks(), 10U);
  EXPECT_EQ(pool_->grown(), 6U);
  EXPECT_EQ(pool_->busy(), 8U);
  EXPECT_EQ(TakeAll(progress::StagingUse::kIncoming).size(), 2U);
}

TEST_F(GrowingPoolTest, LendsNewBlocksOnceTheyArePinnedAndAsksOnce) {
  BeginToGrowFor(progress::StagingUse::kIncoming);
  pool_->Grow();
  EXPECT_EQ(registrar_->pending(), 2U);
  EXPECT_EQ(pool_->blocks(), 4U);
  EXPECT_EQ(pool_->busy(), 2U);
  EXPECT_FALSE(pool_->HasFree(progress::StagingUse::kIncoming));
  Collect();
  EXPECT_EQ(TakeAll(progress::StagingUse::kIncoming).size(), 2U);
}

TEST_F(GrowingPoolTest, GoesOnWithWhatThereIsWhenItMayNotGrow) {
  transport_.RefuseMemory();
  const auto taken = GrowFor(progress::StagingUse::kOutgoing);
  EXPECT_TRUE(pool_->failure().ok());
  EXPECT_EQ(pool_->blocks(), 4U);
  EXPECT_FALSE(pool_->HasFree(progress::StagingUse::kOutgoing));
  transport_.RefuseMemory(false);
  GrowFor(progress::StagingUse::kOutgoing);  // it is too early
  EXPECT_EQ(pool_->blocks(), 4U);
  pool_->Trim(kIdleNs);
  pool_->Trim(2 * kIdleNs);
  GrowFor(progress::StagingUse::kOutgoing);
  EXPECT_EQ(pool_->blocks(), 6U);
  GiveAll(taken);
}

TEST_F(GrowingPoolTest, LetsGoOfWhatNobodyNeededForAWhile) {
  auto taken = GrowFor(progress::StagingUse::kOutgoing);
  const auto more = GrowFor(progress::StagingUse::kOutgoing);
  taken.insert(taken.end(), more.begin(), more.end());
  const auto last = TakeAll(progress::StagingUse::kOutgoing);
  taken.insert(taken.end(), last.begin(), last.end());
  ASSERT_EQ(taken.size(), 8U);
  pool_->Trim(kIdleNs);
  GiveAll(taken);
  pool_->Trim(2 * kIdleNs - 1);
  pool_->Trim(2 * kIdleNs);  // all were in use since the last time
  EXPECT_EQ(pool_->blocks(), 10U);
  progress::StagingBlock* one = pool_->Take(progress::StagingUse::kOutgoing, 0);
  progress::StagingBlock* two = pool_->Take(progress::StagingUse::kOutgoing, 0);
  progress::StagingBlock* three = pool_->Take(progress::StagingUse::kOutgoing, 0);
  GiveAll({one, two, three});
  pool_->Trim(3 * kIdleNs);
  EXPECT_EQ(pool_->blocks(), 5U);  // three were needed at a time
  EXPECT_TRUE(pool_->has_spare());
  pool_->Trim(4 * kIdleNs);
  EXPECT_EQ(pool_->blocks(), 4U);
  EXPECT_FALSE(pool_->has_spare());
  EXPECT_EQ(pool_->shrunk(), 6U);
  EXPECT_EQ(transport_.regions(), 4U);
  pool_->Trim(5 * kIdleNs);
  EXPECT_EQ(pool_->blocks(), 4U);
}

TEST_F(GrowingPoolTest, GivesTheMemoryBackAndComesAgainWithZeros) {
  GiveAll(GrowFor(progress::StagingUse::kOutgoing));
  const auto all = TakeAll(progress::StagingUse::kOutgoing);
  EXPECT_EQ(all.size(), 4U);
  const uint64_t grown_bytes = ResidentBytes();
  GiveAll(all);
  pool_->Trim(kIdleNs);
  pool_->Trim(2 * kIdleNs);
  // Memory is pinned behind the unpinning, and so once that is done.
  const auto taken = GrowFor(progress::StagingUse::kIncoming);
  EXPECT_EQ(ResidentBytes(), grown_bytes - 2 * kBlockBytes + 2 * kBlockBytes);
  GiveAll(taken);
  BeginToGrowFor(progress::StagingUse::kOutgoing);
  Collect();
  while (progress::StagingBlock* block = pool_->Take(progress::StagingUse::kOutgoing, 0)) {
    EXPECT_EQ(std::count(block->base, block->base + kBlockBytes, std::byte{0}),
              static_cast<ptrdiff_t>(kBlockBytes));
  }
}

TEST_F(GrowingPoolTest, KeepsABlockThatTheNetworkHasNotLetGoOf) {
  GiveAll(GrowFor(progress::StagingUse::kOutgoing));
  pool_->Trim(kIdleNs);
  const auto all = TakeAll(progress::StagingUse::kOutgoing);
  transport_.Hold(all.front()->pinned.region().handle);
  GiveAll(all);
  pool_->Trim(2 * kIdleNs);
  pool_->Trim(3 * kIdleNs);
  EXPECT_EQ(pool_->blocks(), 4U);
  const auto left = TakeAll(progress::StagingUse::kOutgoing);
  EXPECT_EQ(std::count(left.begin(), left.end(), all.front()), 1);  // another went in its place
  pool_.reset();
  EXPECT_EQ(transport_.regions(), 1U);
  transport_.LetGo();
  registrar_->Advance(1);
  EXPECT_EQ(transport_.regions(), 0U);
}

TEST_F(GrowingPoolTest, EndsWhileItGrows) {
  BeginToGrowFor(progress::StagingUse::kOutgoing);
  pool_.reset();
  Collect();
  EXPECT_EQ(transport_.regions(), 0U);
}

// ---- Shares ------------------------------------------------------------------------------------

TEST(StagingShareTest, ATransferGetsMoreBlocksWhereItsRankWouldGetLessThanItsPart) {
  TestRegistrar registrar;
  progress::StagingShape shape{4096, 32};
  shape.weights = {{7, 3}};
  const auto pool = registrar.MakePool(shape);
  constexpr progress::StagingUse kUse = progress::StagingUse::kOutgoing;
  EXPECT_EQ(pool->Window(kUse, 7, 4), 4U);  // no transfer waits
  progress::StagingBlock* block = pool->Take(kUse, 7);
  pool->waiters(kUse).Push(1, 1);
  EXPECT_EQ(pool->Window(kUse, 7, 4), 13U);  // 3/4 of 16, and one more
  EXPECT_EQ(pool->Window(kUse, 1, 4), 5U);
  EXPECT_EQ(pool->Window(kUse, 1, 8), 8U);
  pool->Give(block);
  EXPECT_EQ(pool->Window(kUse, 1, 4), 17U);
}

TEST(StagingShareTest, ABlockCountsForWhoTookItEvenIfItIsNearlyEmpty) {
  TestRegistrar registrar;
  const auto pool = registrar.MakePool({64 << 10, 8});
  progress::FairQueue& waiters = pool->waiters(progress::StagingUse::kOutgoing);
  pool->Charge(*pool->Take(progress::StagingUse::kOutgoing, 1), 4096);
  pool->Charge(*pool->Take(progress::StagingUse::kOutgoing, 2), 1);
  pool->Charge(*pool->Take(progress::StagingUse::kOutgoing, 2), 1);
  waiters.Push(2, 20);
  waiters.Push(1, 10);
  EXPECT_EQ(waiters.Pop(), 10U);
}

// ---- Depot -------------------------------------------------------------------------------------

class StagingDepotTest : public testing::Test {
 protected:
  // Provides the stage with memory, and waits until there is some.
  ErrorCode Provide(progress::Stage& stage) {
    const ErrorCode code = depot_.Provide(stage);
    registrar_.Collect();
    return code != ErrorCode::kOk ? code : depot_.Provide(stage);
  }

  TestRegistrar registrar_;
  FakeTransport& transport_ = registrar_.transport();
  progress::StagingDepot depot_{*registrar_};
  const std::shared_ptr<CopyPool> copies_ = std::make_shared<CopyPool>(0, [] {});
  progress::Stage stage_{copies_, 4096, 2};
};

TEST_F(StagingDepotTest, MakesAPoolOnceAndForOneJob) {
  ASSERT_EQ(Provide(stage_), ErrorCode::kOk);
  progress::StagingPool* const first = stage_.pool;
  ASSERT_EQ(Provide(stage_), ErrorCode::kOk);
  EXPECT_EQ(stage_.pool, first);
  progress::Stage other{copies_, 4096, 2};
  ASSERT_EQ(Provide(other), ErrorCode::kOk);
  EXPECT_NE(other.pool, first);
  EXPECT_EQ(depot_.pools().size(), 2U);
}

TEST_F(StagingDepotTest, FreesAPoolThatNobodyUsesAtOnce) {
  ASSERT_EQ(Provide(stage_), ErrorCode::kOk);
  EXPECT_EQ(transport_.regions(), 2U);
  depot_.Retire(stage_, 100);
  EXPECT_TRUE(depot_.pools().empty());
  EXPECT_EQ(transport_.regions(), 0U);
  depot_.Retire(progress::Stage{copies_, 4096, 2}, 100);
}

TEST_F(StagingDepotTest, KeepsAPoolWhilePeersOrTheNicMayUseIt) {
  ASSERT_EQ(Provide(stage_), ErrorCode::kOk);
  transport_.Hold(stage_.pool->Take(progress::StagingUse::kOutgoing, 0)->pinned.region().handle);
  stage_.pool->Take(progress::StagingUse::kIncoming, 0);
  depot_.Retire(stage_, 100);
  registrar_->Advance(99);
  EXPECT_EQ(transport_.regions(), 2U);
  EXPECT_EQ(registrar_->next_ns(), 100U);
  registrar_->Advance(100);
  EXPECT_EQ(transport_.regions(), 1U);
  transport_.LetGo();
  registrar_->Advance(registrar_->next_ns());
  EXPECT_EQ(registrar_->next_ns(), UINT64_MAX);
  EXPECT_EQ(transport_.regions(), 0U);
}

TEST_F(StagingDepotTest, PassesOnWhyThereIsNoMemory) {
  transport_.RefuseMemory();
  EXPECT_EQ(Provide(stage_), ErrorCode::kLimitExceeded);
  EXPECT_FALSE(stage_.pool->HasFree(progress::StagingUse::kIncoming));
}

TEST_F(StagingDepotTest, ProvidesNothingForWantOfACopier) {
  stage_.copier = nullptr;
  EXPECT_EQ(Provide(stage_), ErrorCode::kUnsupported);
  EXPECT_TRUE(depot_.pools().empty());
}

// ---- Copy pool ---------------------------------------------------------------------------------

progress::CopyTask Task(progress::CopyTask::Direction direction, const void* remote, void* local,
                        uint64_t size_bytes) {
  progress::CopyTask task;
  task.direction = direction;
  task.pid = getpid();
  task.remote_address = reinterpret_cast<uint64_t>(remote);
  task.local = static_cast<std::byte*>(local);
  task.size_bytes = size_bytes;
  task.context = local;
  return task;
}

class CopyPoolTest : public testing::TestWithParam<uint32_t>, private progress::CopySink {
 protected:
  static constexpr uint32_t kBlocks = 4;

  void CollectAll(CopyPool& pool, std::vector<progress::CopyTask>* done) {
    done_ = done;
    while (pool.pending() != 0) {
      if (pool.Collect(*this) == 0) {
        sched_yield();
      }
    }
  }

  TestRegistrar registrar_;
  const std::unique_ptr<progress::StagingPool> staging_ = registrar_.MakePool({4096, kBlocks});
  std::atomic<uint32_t> notified_{0};

 private:
  void OnCopied(const progress::CopyTask& task) override { done_->push_back(task); }

  std::vector<progress::CopyTask>* done_ = nullptr;
};

TEST_P(CopyPoolTest, CopiesBothWays) {
  CopyPool pool(GetParam(), [this] { ++notified_; });
  pool.Open(*staging_);
  const uint64_t remote = 17;
  uint64_t local = 0;
  uint64_t other = 0;
  ASSERT_TRUE(pool.Submit(Task(progress::CopyTask::Direction::kFromProcess, &remote, &local, 8)));
  std::vector<progress::CopyTask> done;
  CollectAll(pool, &done);
  ASSERT_EQ(done.size(), 1U);
  EXPECT_EQ(done[0].result, ErrorCode::kOk);
  EXPECT_EQ(done[0].context, &local);
  EXPECT_EQ(local, 17U);
  ASSERT_TRUE(pool.Submit(Task(progress::CopyTask::Direction::kToProcess, &other, &local, 8)));
  CollectAll(pool, &done);
  EXPECT_EQ(other, 17U);
  EXPECT_EQ(notified_.load(), 2U);
}

TEST_P(CopyPoolTest, ReportsWhatFails) {
  CopyPool pool(GetParam(), [] {});
  pool.Open(*staging_);
  uint64_t local = 0;
  ASSERT_TRUE(pool.Submit(Task(progress::CopyTask::Direction::kFromProcess,
                               reinterpret_cast<const void*>(4096), &local, 8)));
  std::vector<progress::CopyTask> done;
  CollectAll(pool, &done);
  ASSERT_EQ(done.size(), 1U);
  EXPECT_EQ(done[0].result, ErrorCode::kInvalidBuffer);
}

TEST_P(CopyPoolTest, TakesNoMoreThanItsCapacityAndStaysInOrderOfUse) {
  const uint32_t capacity = staging_->fragments();
  CopyPool pool(GetParam(), [] {});
  pool.Open(*staging_);
  std::vector<progress::CopyTask> done;
  const uint64_t remote = 3;
  std::vector<uint64_t> local(capacity);
  for (int round = 0; round < 50; ++round) {
    for (uint64_t& word : local) {
      word = 0;
      ASSERT_TRUE(
          pool.Submit(Task(progress::CopyTask::Direction::kFromProcess, &remote, &word, 8)));
    }
    EXPECT_FALSE(
        pool.Submit(Task(progress::CopyTask::Direction::kFromProcess, &remote, &local[0], 8)));
    CollectAll(pool, &done);
    EXPECT_EQ(local, std::vector<uint64_t>(capacity, 3));
  }
  EXPECT_EQ(done.size(), 50U * capacity);
  pool.Close(*staging_);
  EXPECT_FALSE(
      pool.Submit(Task(progress::CopyTask::Direction::kFromProcess, &remote, &local[0], 8)));
}

INSTANTIATE_TEST_SUITE_P(Workers, CopyPoolTest, testing::Values(0U, 1U, 3U));

}  // namespace
}  // namespace ferry::daemon
