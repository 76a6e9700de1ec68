#include "client/p2p/request_pool.h"

#include <algorithm>

#include "engine/transfer.h"
#include "shm/atomic.h"

namespace ferry::client {

using shm::RequestLayout;
using shm::RequestState;

namespace {

constexpr uint32_t kRetireTries = 4;  // waiting slots looked at per Take

bool IsActive(RequestState state) {
  return state != RequestState::kFree && state != RequestState::kInactive &&
         state != RequestState::kComplete;
}

}  // namespace

RequestPool::RequestPool(const engine::SessionView& view, bool shared_by_threads)
    : view_(view), shared_by_threads_(shared_by_threads) {}

bool RequestPool::IsReusable(uint32_t request) const {
  const RequestLayout& slot = *view_.request(request);
  const auto peer = static_cast<uint32_t>(slot.peer);
  return engine::IsReusable(*view_.inbox.transfer(request)) ||
         (peer < view_.job_size && shm::LoadAcquire(view_.by_rank.peers[peer].dead) != 0);
}

uint32_t RequestPool::Take() {
  std::unique_lock lock(mutex_, std::defer_lock);
  if (shared_by_threads_) {
    lock.lock();
  }
  for (uint32_t n = 0; n < kRetireTries && !waiting_.empty(); ++n) {
    const uint32_t request = waiting_.front();
    waiting_.pop_front();
    if (IsReusable(request)) {
      free_.push_back(request);
    } else {
      waiting_.push_back(request);
    }
  }
  uint32_t request = 0;
  if (!free_.empty()) {
    request = free_.back();
    free_.pop_back();
  } else if (const uint32_t fresh = shm::LoadRelaxed(view_.layout->request_fresh);
             fresh < view_.request_limit) {
    request = fresh;
    // Pairs with readers that scan [1, request_fresh), the daemon among them.
    shm::StoreRelease(view_.layout->request_fresh, fresh + 1);
  } else {
    return 0;
  }
  shm::StoreRelaxed(in_use_, in_use_ + 1);
  Rename(request);
  RequestLayout& slot = *view_.request(request);
  slot.flags = 0;
  slot.descriptor_kind = 0;
  slot.transfer_index = 0;
  (void)Renew(request);
  return request;
}

// Relaxed: a thread whose handle has just ended may still compare its serial with this one.
void RequestPool::Rename(uint32_t request) {
  RequestLayout& slot = *view_.request(request);
  shm::StoreRelaxed(slot.serial, slot.serial == ~uint32_t{0} ? 1 : slot.serial + 1);
}

bool RequestPool::Renew(uint32_t request) {
  RequestLayout& slot = *view_.request(request);
  if (slot.transfer_rank == view_.rank && slot.transfer_index == request && !IsReusable(request)) {
    return false;
  }
  // Relaxed: the holder of the lease may be looking for requests with a dead rank.
  shm::StoreRelaxed(slot.generation, slot.generation + 1);
  slot.transfer_index = 0;
  shm::StoreRelaxed(slot.error, 0);
  return true;
}

void RequestPool::GiveBack(uint32_t request) {
  std::unique_lock lock(mutex_, std::defer_lock);
  if (shared_by_threads_) {
    lock.lock();
  }
  RequestLayout& slot = *view_.request(request);
  const bool announced = slot.kind == static_cast<uint32_t>(shm::RequestKind::kSend) &&
                         slot.transfer_index == request && !IsReusable(request);
  shm::StoreRelease(slot.state, static_cast<uint32_t>(RequestState::kFree));
  shm::StoreRelaxed(in_use_, in_use_ - 1);
  if (announced) {
    waiting_.push_back(request);
  } else {
    free_.push_back(request);
  }
}

bool RequestPool::Uses(const void* begin, uint64_t size_bytes) const {
  return AnyAt(begin, size_bytes,
               [](const RequestLayout&, RequestState state) { return IsActive(state); });
}

bool RequestPool::Holds(const void* begin, uint64_t size_bytes) const {
  return AnyAt(begin, size_bytes, [](const RequestLayout& slot, RequestState state) {
    return IsActive(state) ||
           (state != RequestState::kFree && (slot.flags & shm::kRequestPersistent) != 0);
  });
}

// Returns true if some request uses any of these bytes and satisfies `counts(slot, state)`.
template <typename Counts>
bool RequestPool::AnyAt(const void* begin, uint64_t size_bytes, Counts&& counts) const {
  const auto first = reinterpret_cast<uint64_t>(begin);
  const uint32_t fresh = shm::LoadAcquire(view_.layout->request_fresh);
  for (uint32_t request = 1; request < fresh; ++request) {
    const RequestLayout& slot = *view_.request(request);
    if (!counts(slot, static_cast<RequestState>(shm::LoadAcquire(slot.state)))) {
      continue;
    }
    // Pair with Requests::Fill. The request that was counted may be over meanwhile, and its slot
    // another one's: then that one's buffer is as good an answer.
    const uint64_t used = shm::LoadRelaxed(slot.user_address);
    if (used < first + size_bytes && first < used + shm::LoadRelaxed(slot.size_bytes)) {
      return true;
    }
  }
  return false;
}

}  // namespace ferry::client
