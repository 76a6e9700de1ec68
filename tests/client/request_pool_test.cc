#include "client/core/request_pool.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <set>
#include <vector>

#include "engine/transfer.h"
#include "shm/atomic.h"

namespace ferry::client {
namespace {

using shm::RequestState;

constexpr uint32_t kRequests = 8;  // slot 0 included

class RequestPoolTest : public testing::Test {
 protected:
  RequestPoolTest() {
    engine::SegmentPlan plan;
    plan.job_size = 2;
    plan.local_size = 2;
    plan.request_limit = kRequests;
    plan.unexpected_limit = 4;
    session_.reset(static_cast<std::byte*>(aligned_alloc(4096, plan.session_bytes())));
    inbox_.reset(static_cast<std::byte*>(aligned_alloc(4096, plan.inbox_bytes())));
    memset(session_.get(), 0, plan.session_bytes());
    memset(inbox_.get(), 0, plan.inbox_bytes());
    engine::InitializeSegments(plan, 1, session_.get(), inbox_.get());
    view_ = *engine::ViewSession(session_.get(), plan.session_bytes(), inbox_.get(),
                                 plan.inbox_bytes());
    pool_ = std::make_unique<RequestPool>(view_, false);
  }

  // A request in use, as the client fills it in.
  uint32_t Take() {
    const uint32_t request = pool_->Take();
    if (request != 0) {
      pool_->Slot(request).kind = static_cast<uint32_t>(shm::RequestKind::kSend);
      pool_->Slot(request).peer = 1;
      SetState(request, RequestState::kInactive);
    }
    return request;
  }
  void SetState(uint32_t request, RequestState state) {
    shm::StoreRelease(pool_->Slot(request).state, static_cast<uint32_t>(state));
  }
  // As if the request's message had been offered and copied.
  void Transfer(uint32_t request, ErrorCode error) {
    shm::RequestLayout& slot = pool_->Slot(request);
    slot.transfer_rank = 0;
    slot.transfer_index = request;
    engine::OfferTransfer(pool_->Transfer(request), slot.generation, {{}, 1, 4096, 0, 1});
    pool_->Transfer(request).error = static_cast<int32_t>(error);
    pool_->Transfer(request).state = static_cast<uint32_t>(shm::TransferState::kDone);
  }

  struct Freer {
    void operator()(std::byte* memory) const { free(memory); }
  };
  std::unique_ptr<std::byte, Freer> session_;
  std::unique_ptr<std::byte, Freer> inbox_;
  engine::SessionView view_;
  std::unique_ptr<RequestPool> pool_;
};

TEST_F(RequestPoolTest, HandsOutEachSlotOnce) {
  std::set<uint32_t> taken;
  for (uint32_t i = 1; i < kRequests; ++i) {
    taken.insert(Take());
  }
  EXPECT_EQ(taken.size(), kRequests - 1);
  EXPECT_EQ(taken.count(0), 0U);
  EXPECT_EQ(Take(), 0U);
  pool_->GiveBack(3);
  EXPECT_EQ(Take(), 3U);
}

TEST_F(RequestPoolTest, HandlesOfEarlierLivesNameNothing) {
  const uint32_t request = Take();
  const RequestHandle handle = pool_->HandleOf(request);
  EXPECT_EQ(pool_->Resolve(handle), request);
  pool_->GiveBack(request);
  EXPECT_EQ(pool_->Resolve(handle), 0U);
  ASSERT_EQ(Take(), request);
  EXPECT_EQ(pool_->Resolve(handle), 0U);
  EXPECT_EQ(pool_->Resolve(0), 0U);
  EXPECT_EQ(pool_->Resolve(kCompletedSend), 0U);
  EXPECT_EQ(pool_->Resolve(~RequestHandle{0}), 0U);
}

TEST_F(RequestPoolTest, PersistentRequestsKeepTheirHandleOverStarts) {
  const uint32_t request = Take();
  const RequestHandle handle = pool_->HandleOf(request);
  const uint32_t generation = pool_->Slot(request).generation;
  Transfer(request, ErrorCode::kOk);
  EXPECT_TRUE(pool_->Renew(request));
  EXPECT_EQ(pool_->Resolve(handle), request);
  EXPECT_NE(pool_->Slot(request).generation, generation);
}

TEST_F(RequestPoolTest, KeepsAFailedTransferUntilTheReceiverHasSeenIt) {
  const uint32_t request = Take();
  Transfer(request, ErrorCode::kInvalidBuffer);
  EXPECT_FALSE(pool_->Renew(request));
  pool_->GiveBack(request);
  const uint32_t other = Take();
  EXPECT_NE(other, request);
  engine::Release(pool_->Transfer(request), pool_->Slot(request).generation);
  EXPECT_EQ(Take(), request);
}

TEST_F(RequestPoolTest, ADeadReceiverSeesNothingMore) {
  const uint32_t request = Take();
  Transfer(request, ErrorCode::kPeerDied);
  view_.layout->peers[1].dead = static_cast<uint32_t>(ErrorCode::kPeerDied);
  pool_->GiveBack(request);
  EXPECT_EQ(Take(), request);
}

TEST_F(RequestPoolTest, TellsWhichMemoryIsInUse) {
  std::vector<char> memory(100);
  const uint32_t request = Take();
  pool_->Slot(request).user_address = reinterpret_cast<uint64_t>(memory.data() + 40);
  pool_->Slot(request).size_bytes = 20;
  EXPECT_FALSE(pool_->Uses(memory.data(), 100)) << "not started";
  SetState(request, RequestState::kPosted);
  EXPECT_TRUE(pool_->Uses(memory.data(), 100));
  EXPECT_TRUE(pool_->Uses(memory.data() + 59, 1));
  EXPECT_FALSE(pool_->Uses(memory.data() + 60, 40));
  EXPECT_FALSE(pool_->Uses(memory.data(), 40));
  SetState(request, RequestState::kComplete);
  EXPECT_FALSE(pool_->Uses(memory.data(), 100));
}

TEST_F(RequestPoolTest, APersistentRequestHoldsItsMemoryBetweenItsStarts) {
  std::vector<char> memory(100);
  const uint32_t request = Take();
  pool_->Slot(request).user_address = reinterpret_cast<uint64_t>(memory.data() + 40);
  pool_->Slot(request).size_bytes = 20;
  EXPECT_FALSE(pool_->Holds(memory.data(), 100));
  SetState(request, RequestState::kQueued);
  EXPECT_TRUE(pool_->Holds(memory.data(), 100));
  SetState(request, RequestState::kComplete);
  EXPECT_FALSE(pool_->Holds(memory.data(), 100));
  pool_->Slot(request).flags |= shm::kRequestPersistent;
  for (const RequestState state :
       {RequestState::kInactive, RequestState::kQueued, RequestState::kComplete}) {
    SetState(request, state);
    EXPECT_TRUE(pool_->Holds(memory.data() + 59, 1));
    EXPECT_FALSE(pool_->Holds(memory.data() + 60, 40));
  }
  SetState(request, RequestState::kFree);
  EXPECT_FALSE(pool_->Holds(memory.data(), 100));
}

}  // namespace
}  // namespace ferry::client
