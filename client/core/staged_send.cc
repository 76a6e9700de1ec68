// Client: sends of private memory by way of the heap. See client.h.
//
// A copy in a heap block stands in for a private buffer of middle size. The send is over as soon as
// the copy is made. Inside the node the receiver copies from memory that it maps. That makes two
// copies, each on its own core; a single copy that walks the sender's page tables would leave the
// other core idle. To another node the daemon sends from the block, and the sender does not wait
// for its answer.
#include <algorithm>
#include <cstring>

#include "client/core/progress.h"
#include "common/clock.h"
#include "engine/request_end.h"
#include "engine/transfer.h"
#include "shm/atomic.h"

namespace ferry::client {

using shm::RequestKind;
using shm::RequestLayout;
using shm::RequestState;

namespace {

// Up to this size private memory is sent to a rank of the node through a heap block. To another
// node the limit is the size that travels with the offer.
constexpr uint64_t kStagedMaxBytes = uint64_t{512} * 1024;
constexpr uint64_t kStagedRemoteMaxBytes = shm::kRunBytes;

// Blocks in flight use at most so many bytes and such a part of the heap, and such a part of the
// requests.
constexpr uint64_t kStagingMaxBytes = uint64_t{4} << 20;
constexpr uint64_t kStagingHeapPart = 4;
constexpr uint32_t kStagedRequestPart = 8;

bool HasFailed(const RequestLayout& slot) {
  return shm::LoadAcquire(slot.state) == static_cast<uint32_t>(RequestState::kComplete) &&
         shm::LoadRelaxed(slot.error) != static_cast<int32_t>(ErrorCode::kOk);
}

}  // namespace

void Client::LimitStaging(uint64_t heap_bytes) {
  staging_bytes_left_ = std::min(kStagingMaxBytes, heap_bytes / kStagingHeapPart);
  staged_limit_ = view_.request_limit / kStagedRequestPart;
}

// An eager message to another node waits for credit, not for anybody to read the buffer.
bool Client::IsOfStagedSize(const Message& message) const {
  return peers_.by_rank[static_cast<uint32_t>(message.peer)].local
             ? message.size_bytes != 0 && message.size_bytes <= kStagedMaxBytes
             : message.size_bytes > eager_max_bytes_ && message.size_bytes <= kStagedRemoteMaxBytes;
}

// Sends by way of the heap. False: the message has to go another way.
bool Client::SendStaged(const Message& message) {
  if (message.synchronous || !IsOfStagedSize(message) ||
      memory_->regions().Find(message.buffer, message.size_bytes).region != 0) {
    return false;
  }
  void* const block = TakeStagingBlock(message.size_bytes);
  if (block == nullptr) {
    return false;
  }
  std::memcpy(block, message.buffer, message.size_bytes);
  Message copy = message;
  copy.buffer = block;
  uint32_t request = 0;
  bool started = Take(copy, RequestKind::kSend, &request) == ErrorCode::kOk;
  if (started) {
    RequestLayout& slot = requests_->Slot(request);
    slot.flags |= engine::kRequestUnwatched;
    // Nobody waits for this send, so the receiver may take its time: no worker is called for it.
    engine::LaneSet uncalled;
    // A peer that is gone is noticed at once; an ordinary send then reports it.
    started = StartSlot(request, &uncalled) == ErrorCode::kOk && !HasFailed(slot);
    if (!started) {
      requests_->GiveBack(request);
    }
  }
  std::lock_guard lock(staging_mutex_);
  if (started) {
    staged_.push_back(request);
  } else {
    GiveStagingBlock(block, message.size_bytes);
  }
  return started;
}

// Waits until all have arrived or their receivers are dead, or the time is over.
void Client::AwaitStaged(uint64_t timeout_ns) {
  const auto all_ended = [this] {
    std::lock_guard lock(staging_mutex_);
    std::erase_if(staged_, [this](uint32_t request) { return EndStaged(request); });
    return staged_.empty();
  };
  const uint64_t end_ns = MonotonicNs() + timeout_ns;
  WaitUntil([&] { return all_ended() || poison() != ErrorCode::kOk || MonotonicNs() >= end_ns; },
            PolicyFor(shm::kAnySource), nullptr, end_ns);
}

// A block for a copy, or null when the blocks in flight use up their share.
void* Client::TakeStagingBlock(uint64_t size_bytes) {
  std::lock_guard lock(staging_mutex_);
  while (!staged_.empty() && EndStaged(staged_.front())) {
    staged_.pop_front();
  }
  const auto has_room = [&] {
    return staging_bytes_left_ >= size_bytes && staged_.size() < staged_limit_;
  };
  if (!has_room()) {  // one receiver that is late must not hold up the others' blocks
    std::erase_if(staged_, [this](uint32_t request) { return EndStaged(request); });
  }
  void* const block = has_room() ? memory_->AllocateBounce(size_bytes, false) : nullptr;
  if (block != nullptr) {
    staging_bytes_left_ -= size_bytes;
  }
  return block;
}

void Client::GiveStagingBlock(void* block, uint64_t size_bytes) {
  memory_->FreeBounce(block);
  staging_bytes_left_ += size_bytes;
}

// Ends a staged send that has arrived, or whose receiver is dead. False: it is still under way.
bool Client::EndStaged(uint32_t request) {
  const RequestLayout& slot = requests_->Slot(request);
  if (IsTransferring(request)) {
    const uint32_t generation = shm::LoadAcquire(slot.generation);
    const engine::TransferProgress progress =
        engine::Look(requests_->Transfer(request), slot.transfer_generation);
    if (progress.done) {
      FinishTransfer(request, generation, progress.error);
    }
  }
  if (shm::LoadAcquire(slot.state) != static_cast<uint32_t>(RequestState::kComplete)) {
    return false;
  }
  void* const block = reinterpret_cast<void*>(slot.user_address);
  const uint64_t size_bytes = slot.size_bytes;
  Completion ignored;
  Collect(request, &ignored);
  GiveStagingBlock(block, size_bytes);
  return true;
}

}  // namespace ferry::client
