// The request slots of a rank (shm/layout/request_layout.h), and the handles that name them.
//
// Only the rank's own threads take and give back slots, so the free list lies in private memory.
// The slot of a send whose transfer failed is set aside until the receiver has seen the failure.
//
// Calling thread: any; a lock is taken only with FERRY_THREAD_MULTIPLE.
#pragma once

#include <cstdint>
#include <deque>
#include <mutex>
#include <vector>

#include "client/api/front_end.h"
#include "engine/session_view.h"
#include "shm/atomic.h"
#include "shm/layout/request_layout.h"

namespace ferry::client {

class RequestPool {
 public:
  RequestPool(const engine::SessionView& view, bool shared_by_threads);

  // Sets whether several threads may call from now on. Call it while no thread is inside.
  void Share(bool by_threads) { shared_by_threads_ = by_threads; }

  // Returns a slot with a new serial and generation, or 0 when all are in use.
  uint32_t Take();
  // Makes the handles of a slot that stays in use invalid.
  void Rename(uint32_t request);
  // Begins a new generation for another start of a persistent request. False: its last transfer
  // failed and the receiver has not seen that yet, so the request cannot be started again.
  bool Renew(uint32_t request);
  void GiveBack(uint32_t request);

  RequestHandle HandleOf(uint32_t request) const {
    return uint64_t{view_.request(request)->serial} << 32 | request;
  }
  // Returns the slot that a handle names, or 0 when it names none that is in use.
  uint32_t Resolve(RequestHandle handle) const {
    const auto request = static_cast<uint32_t>(handle);
    return request != 0 && request < view_.request_limit && IsNamed(request, handle) ? request : 0;
  }
  shm::RequestLayout& Slot(uint32_t request) const { return *view_.request(request); }
  // The request's transfer slot in the rank's own inbox.
  shm::TransferLayout& Transfer(uint32_t request) const { return *view_.inbox.transfer(request); }

  // Returns true if a request that is not complete reads or writes [begin, begin + size_bytes).
  bool Uses(const void* begin, uint64_t size_bytes) const;
  // As Uses, but also counts persistent requests that are not active and may start again.
  bool Holds(const void* begin, uint64_t size_bytes) const;
  // Any thread; other threads may be taking and giving back slots.
  uint32_t in_use() const { return shm::LoadRelaxed(in_use_); }
  // All slot numbers are below this one.
  uint32_t limit() const { return view_.request_limit; }

 private:
  bool IsNamed(uint32_t request, RequestHandle handle) const {
    const shm::RequestLayout& slot = *view_.request(request);
    return request < shm::LoadAcquire(view_.layout->request_fresh) &&
           shm::LoadRelaxed(slot.serial) == static_cast<uint32_t>(handle >> 32) &&
           shm::LoadRelaxed(slot.state) != static_cast<uint32_t>(shm::RequestState::kFree);
  }
  bool IsReusable(uint32_t request) const;
  template <typename Counts>
  bool AnyAt(const void* begin, uint64_t size_bytes, Counts&& counts) const;

  const engine::SessionView view_;
  bool shared_by_threads_;
  mutable std::mutex mutex_;
  std::vector<uint32_t> free_;
  std::deque<uint32_t> waiting_;  // given back, transfer not yet released
  uint32_t in_use_ = 0;           // read without the mutex
};

}  // namespace ferry::client
