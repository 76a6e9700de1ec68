#include "internode/registration/pinned_memory.h"

#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include "tests/internode/registration/test_registrar.h"
#include "tests/support/patience.h"

namespace ferry::daemon {
namespace {

class PinnedMemoryTest : public testing::Test {
 protected:
  progress::PinnedMemory Begin() {
    return {*registrar_, {.memory = memory_, .on_end = [this] { ++ended_; }}};
  }
  progress::PinnedMemory Pin() {
    progress::PinnedMemory pinned = Begin();
    registrar_.Collect();
    EXPECT_TRUE(pinned.is_pinned());
    return pinned;
  }
  // Returns true if only the test holds the memory, once the registrar has nothing left to do.
  bool IsFree() {
    registrar_.Finish();
    return memory_.use_count() == 1;
  }

  const std::shared_ptr<int> memory_ = std::make_shared<int>();
  TestRegistrar registrar_;
  FakeTransport& transport_ = registrar_.transport();
  int ended_ = 0;
};

TEST_F(PinnedMemoryTest, IsPinnedOnceTheRegistrarSaysSo) {
  progress::PinnedMemory pinned = Begin();
  EXPECT_TRUE(pinned.is_pinning());
  registrar_.Collect();
  EXPECT_EQ(pinned.code(), ErrorCode::kOk);
  EXPECT_EQ(ended_, 1);
  EXPECT_EQ(transport_.regions(), 1U);
  EXPECT_EQ(transport_.AccessOf(pinned.region().handle), transport::Access::kLocal);
}

TEST_F(PinnedMemoryTest, SaysWhyTheNicRefuses) {
  transport_.RefuseMemory();
  progress::PinnedMemory pinned = Begin();
  registrar_.Collect();
  EXPECT_EQ(pinned.code(), ErrorCode::kLimitExceeded);
  EXPECT_EQ(pinned.status().message(), "no more registrations");
  EXPECT_EQ(ended_, 1);
  EXPECT_TRUE(pinned.TryRelease());
  EXPECT_EQ(pinned.code(), ErrorCode::kNotFound);
  EXPECT_TRUE(IsFree());
}

TEST_F(PinnedMemoryTest, LetsGoAtItsEnd) {
  std::optional<progress::PinnedMemory> pinned = Pin();
  progress::PinnedMemory moved = std::move(*pinned);
  pinned.reset();
  EXPECT_EQ(transport_.regions(), 1U);
  EXPECT_FALSE(IsFree());
  moved = {};
  EXPECT_EQ(transport_.regions(), 0U);
  EXPECT_TRUE(IsFree());
}

TEST_F(PinnedMemoryTest, UndoesAPinningThatNobodyWants) {
  Begin();
  registrar_.Collect();
  EXPECT_EQ(ended_, 0);
  EXPECT_EQ(transport_.regions(), 0U);
  EXPECT_TRUE(IsFree());
}

TEST_F(PinnedMemoryTest, ACancelledPinningTellsOfItsEnd) {
  progress::PinnedMemory pinned = Begin();
  pinned.Cancel();
  EXPECT_FALSE(pinned.TryRelease());
  registrar_.Collect();
  EXPECT_EQ(ended_, 1);
  EXPECT_EQ(pinned.code(), ErrorCode::kCancelled);
  EXPECT_EQ(transport_.regions(), 0U);
  EXPECT_TRUE(IsFree());
}

TEST_F(PinnedMemoryTest, StaysWhileTheNicUsesIt) {
  progress::PinnedMemory pinned = Pin();
  transport_.Hold(pinned.region().handle);
  EXPECT_FALSE(pinned.TryRelease());
  EXPECT_TRUE(pinned.is_pinned());
  pinned = {};
  registrar_->Advance(1);
  EXPECT_FALSE(IsFree());
  EXPECT_GT(registrar_->next_ns(), 1U);
  transport_.LetGo();
  registrar_->Advance(registrar_->next_ns());
  EXPECT_TRUE(IsFree());
  EXPECT_EQ(registrar_->next_ns(), UINT64_MAX);
}

TEST_F(PinnedMemoryTest, StaysUntilTheTimeForWhichItIsGivenUp) {
  Pin().ReleaseAt(100);
  EXPECT_EQ(registrar_->next_ns(), 100U);
  registrar_->Advance(99);
  EXPECT_EQ(transport_.regions(), 1U);
  EXPECT_FALSE(IsFree());
  registrar_->Advance(100);
  EXPECT_EQ(transport_.regions(), 0U);
  EXPECT_TRUE(IsFree());
}

TEST_F(PinnedMemoryTest, TellsWhenItIsUnpinned) {
  progress::PinnedMemory pinned = Pin();
  auto signal = std::make_shared<progress::UnpinSignal>();
  std::future<void> unpinned = signal->done.get_future();
  EXPECT_TRUE(pinned.TryRelease(std::move(signal)));
  EXPECT_EQ(unpinned.wait_for(tests::kPatience), std::future_status::ready);
  EXPECT_TRUE(IsFree());
}

TEST_F(PinnedMemoryTest, IsPinnedAnewUnderAnotherKey) {
  progress::PinnedMemory pinned = Pin();
  const uint64_t key = pinned.region().key;
  transport_.Hold(pinned.region().handle);
  EXPECT_FALSE(pinned.TryRenew());
  EXPECT_TRUE(pinned.is_pinned());
  transport_.LetGo();
  EXPECT_TRUE(pinned.TryRenew());
  EXPECT_TRUE(pinned.is_pinning());
  registrar_.Collect();
  EXPECT_TRUE(pinned.is_pinned());
  EXPECT_NE(pinned.region().key, key);
  EXPECT_EQ(transport_.regions(), 1U);
  EXPECT_EQ(ended_, 2);
}

TEST(PinnedMemoryOfNoNicTest, IsRegisteredByTheCallerAndReportedByTheNextCollect) {
  FakeTransport transport;
  transport.PinNothing();
  progress::Registrar registrar(transport, [] { FAIL() << "another thread has to do with it"; });
  int ended = 0;
  progress::PinnedMemory pinned(registrar, {.on_end = [&] { ++ended; }});
  EXPECT_TRUE(pinned.is_pinned());
  EXPECT_EQ(ended, 0);
  EXPECT_TRUE(registrar.has_news());
  EXPECT_EQ(registrar.pending(), 1U);
  EXPECT_EQ(registrar.Collect(), 1U);
  EXPECT_EQ(ended, 1);
  EXPECT_FALSE(registrar.has_news());
  EXPECT_EQ(registrar.pending(), 0U);
  auto signal = std::make_shared<progress::UnpinSignal>();
  std::future<void> unpinned = signal->done.get_future();
  EXPECT_TRUE(pinned.TryRelease(std::move(signal)));
  EXPECT_EQ(unpinned.wait_for(std::chrono::seconds(0)), std::future_status::ready);
  EXPECT_EQ(transport.regions(), 0U);
}

// To unmap it may take long, whoever has pinned it.
TEST(PinnedMemoryOfNoNicTest, ItsEndIsLeftToTheRegistrarsThread) {
  FakeTransport transport;
  transport.PinNothing();
  std::promise<std::thread::id> freed;
  progress::Registrar registrar(transport, [] {});
  std::shared_ptr<void> memory(&freed, [&](void*) { freed.set_value(std::this_thread::get_id()); });
  progress::PinnedMemory pinned(registrar, {.memory = std::move(memory)});
  registrar.Collect();
  EXPECT_TRUE(pinned.TryRelease());
  EXPECT_NE(freed.get_future().get(), std::this_thread::get_id());
}

TEST(PinnedMemoryOfNoNicTest, NothingIsToldOfWhatHasGoneMeanwhile) {
  FakeTransport transport;
  transport.PinNothing();
  const auto memory = std::make_shared<int>();
  {
    progress::Registrar registrar(transport, [] {});
    progress::PinnedMemory(registrar, {.memory = memory, .on_end = [] { FAIL(); }});
    EXPECT_EQ(transport.regions(), 0U);
    EXPECT_EQ(registrar.Collect(), 1U);
    transport.RefuseMemory();
    const progress::PinnedMemory refused(registrar, {.memory = memory});
    EXPECT_EQ(refused.code(), ErrorCode::kLimitExceeded);
  }
  EXPECT_EQ(memory.use_count(), 1);
}

// As the progress thread's core has it: the registrar, then the transport, then the memory.
TEST(PinnedMemoryEndTest, OutlivesTheRegistrarThatItBelongsTo) {
  const auto memory = std::make_shared<int>();
  progress::PinnedMemory pinned, begun;
  {
    TestRegistrar registrar;
    pinned = progress::PinnedMemory(*registrar, {.memory = memory});
    registrar.Collect();
    begun = progress::PinnedMemory(*registrar, {.memory = memory});
  }
  EXPECT_GE(memory.use_count(), 2);
  EXPECT_TRUE(pinned.TryRelease());
  begun = {};
  EXPECT_EQ(memory.use_count(), 1);
}

}  // namespace
}  // namespace ferry::daemon
