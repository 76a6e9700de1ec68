// Client: how requests end. See client.h.
#include <algorithm>
#include <cstring>
#include <utility>

#include "client/core/progress.h"
#include "engine/request_end.h"
#include "shm/atomic.h"

namespace ferry::client {

using shm::RequestKind;
using shm::RequestLayout;
using shm::RequestState;

// Does the work that only the rank's own threads do for a request: copies landed data, helps to
// copy transfers. True: it is complete (or inactive), or the rank is poisoned.
bool Client::Advance(uint32_t request) {
  RequestLayout& slot = requests_->Slot(request);
  // Pairs with the engine's stores of the state: acquires the words that belong to it.
  switch (static_cast<RequestState>(shm::LoadAcquire(slot.state))) {
    case RequestState::kComplete:
      return true;
    case RequestState::kInactive:
      return !IsHeld(slot) || AdvanceHeld(request);
    case RequestState::kLanded:
      CopyLanded(slot);
      return true;
    case RequestState::kTransferring:
      while (CopyTransfer(request)) {
      }
      // Without a daemon nobody reports that the other rank has died, so its chunks may never come.
      return shm::LoadAcquire(slot.state) == static_cast<uint32_t>(RequestState::kComplete) ||
             wake_.poison() != ErrorCode::kOk;
    case RequestState::kMatched:
      return AdvanceMatched(request);
    default:
      return wake_.poison() != ErrorCode::kOk;
  }
}

// The same for a held receive.
bool Client::AdvanceHeld(uint32_t request) {
  TakeHeld();
  is_held_up_by_held_ = IsHeld(requests_->Slot(request));
  return !is_held_up_by_held_ && Advance(request);
}

void Client::CopyLanded(RequestLayout& slot) {
  const uint64_t size_bytes = std::min(slot.message_bytes, slot.size_bytes);
  auto* user = reinterpret_cast<void*>(slot.user_address);
  ErrorCode error = ErrorCode::kOk;
  if ((slot.descriptor_flags & shm::kFlagCell) != 0) {
    shm::LaneConsumer lane(view_.inbox.lane(slot.lane));
    error = memory_->CopyTo(user, lane.Cell(slot.cell), size_bytes);
    lane.ReleaseCells(slot.cell, slot.message_bytes);
  } else if (size_bytes != 0) {
    error = memory_->CopyTo(user, slot.payload, size_bytes);
  }
  if (error != ErrorCode::kOk) [[unlikely]] {
    shm::StoreRelaxed(slot.error, static_cast<int32_t>(error));
  }
  shm::StoreRelease(slot.state, static_cast<uint32_t>(RequestState::kComplete));
}

// Copies one chunk of a transfer. True: it did, and there may be more; the request is completed
// when the transfer is done.
bool Client::CopyTransfer(uint32_t request) {
  const RequestLayout& slot = requests_->Slot(request);
  const uint32_t generation = shm::LoadAcquire(slot.generation);
  shm::TransferLayout* transfer = peers_.Inbox(slot.transfer_rank).transfer(slot.transfer_index);
  if (transfer == nullptr) {
    Status refusal = MapInbox(slot.transfer_rank);
    const ErrorCode error = refusal.ok() ? ErrorCode::kCorrupt : refusal.code();
    failure_words_.Note(request, generation, std::move(refusal));
    FinishTransfer(request, generation, error);
    return false;
  }
  const bool is_send = slot.kind == static_cast<uint32_t>(RequestKind::kSend);
  const int32_t other = is_send ? slot.peer : slot.status_source;
  const engine::OwnEnd own{is_send, view_.rank, static_cast<uint32_t>(other), slot.buffer,
                           std::min(slot.message_bytes, slot.size_bytes)};
  Status found;
  const engine::ChunkResult result =
      peer_memory_->CopyChunk(*transfer, slot.transfer_generation, own, &found);
  if (!found.ok()) [[unlikely]] {
    failure_words_.Note(request, generation, std::move(found));
  }
  shm::Wake others(peers_.Wake(static_cast<uint32_t>(other)));
  if (result == engine::ChunkResult::kLeft) {
    others.Publish();
  } else if (result != engine::ChunkResult::kNothing) {
    statistics_.AddShared(shm::Statistic::kChunksCopiedByRank);
  }
  const engine::TransferProgress progress = engine::Look(*transfer, slot.transfer_generation);
  if (progress.done) {
    FinishTransfer(request, generation, progress.error);
    if (result == engine::ChunkResult::kFinished) {
      others.Publish();
    }
    return false;
  }
  return result == engine::ChunkResult::kCopied;
}

void Client::FinishTransfer(uint32_t request, uint32_t generation, ErrorCode error) {
  RequestLayout& slot = requests_->Slot(request);
  if (error != ErrorCode::kOk) {
    shm::StoreRelaxed(slot.error, static_cast<int32_t>(error));
  }
  if (error != ErrorCode::kOk && slot.kind == static_cast<uint32_t>(RequestKind::kReceive)) {
    if (shm::TransferLayout* transfer =
            peers_.Inbox(slot.transfer_rank).transfer(slot.transfer_index);
        transfer != nullptr) {
      engine::Release(*transfer, slot.transfer_generation);
    }
  }
  (void)engine::EndTransfer(slot, generation);
}

// Ends the use of a stand-in block: moves received data to where the application wants it, and
// frees the block unless a persistent request will need it again.
ErrorCode Client::EndBounce(RequestLayout& slot, bool deliver) {
  ErrorCode error = ErrorCode::kOk;
  // A matched request's channel has delivered.
  if ((slot.flags & shm::kRequestBounce) == 0 ||
      (deliver && (slot.flags & shm::kRequestPaired) != 0)) {
    return error;
  }
  std::byte* block = memory_->regions().ById(slot.buffer.region)->base + slot.buffer.address;
  const bool fetched = slot.kind == static_cast<uint32_t>(RequestKind::kReceive) &&
                       slot.descriptor_kind != static_cast<uint8_t>(shm::DescriptorKind::kEager);
  if (deliver && fetched) {
    error = memory_->CopyTo(reinterpret_cast<void*>(slot.user_address), block,
                            std::min(slot.message_bytes, slot.size_bytes));
  }
  if ((slot.flags & shm::kRequestPersistent) == 0) {
    memory_->FreeBounce(block);
  }
  return error;
}

// Gives back a request that was not started, and its stand-in block.
void Client::GiveUp(uint32_t request) {
  (void)EndBounce(requests_->Slot(request), false);
  requests_->GiveBack(request);
}

// Fills in a request's outcome and ends its life, or makes it ready for another start.
void Client::Collect(uint32_t request, Completion* completion) {
  RequestLayout& slot = requests_->Slot(request);
  const auto state = static_cast<RequestState>(shm::LoadAcquire(slot.state));
  if (state == RequestState::kInactive) {
    *completion = {};
    return;
  }
  if (state != RequestState::kComplete) {
    // Poisoned in mid-flight: the slot is never used again, for somebody may still write to it.
    *completion = {slot.status_source, slot.status_tag, FailureWords::Tell(wake_.poison()), 0};
    return;
  }
  Forget(request);
  completion->source = slot.status_source;
  completion->tag = slot.status_tag;
  completion->error = static_cast<ErrorCode>(shm::LoadRelaxed(slot.error));
  const bool usable =
      completion->error == ErrorCode::kOk || completion->error == ErrorCode::kTruncated;
  completion->size_bytes = usable ? std::min(slot.message_bytes, slot.size_bytes) : 0;
  // After any other error somebody may still write to the block: it stays taken.
  if (usable || completion->error == ErrorCode::kCancelled) {
    if (const ErrorCode error = EndBounce(slot, usable); error != ErrorCode::kOk) [[unlikely]] {
      completion->error = error;
      completion->size_bytes = 0;
    }
  }
  if (completion->error != ErrorCode::kOk && completion->error != ErrorCode::kCancelled &&
      (slot.flags & engine::kRequestUnwatched) == 0) [[unlikely]] {
    failure_words_.Tell(request, shm::LoadRelaxed(slot.generation), completion->error);
  }
  if ((slot.flags & shm::kRequestPersistent) != 0) {
    shm::StoreRelease(slot.state, static_cast<uint32_t>(RequestState::kInactive));
  } else {
    requests_->GiveBack(request);
  }
}

bool Client::TestNow(RequestHandle handle, Completion* completion) {
  const uint32_t request = requests_->Resolve(handle);
  if (request == 0) {
    *completion = {};
    return true;
  }
  if (!Advance(request)) {
    return false;
  }
  Collect(request, completion);
  return true;
}

bool Client::Test(RequestHandle handle, Completion* completion) {
  if (TestNow(handle, completion)) {
    return true;
  }
  (void)PollOnce();
  return TestNow(handle, completion);
}

void Client::Wait(RequestHandle handle, Completion* completion) {
  const uint32_t request = requests_->Resolve(handle);
  if (request == 0) {
    *completion = {};
    return;
  }
  WaitUntil([&] { return Advance(request); }, PolicyFor(requests_->Slot(request).peer));
  Collect(request, completion);
}

void Client::AwaitAll(std::span<const RequestHandle> handles) {
  size_t next = 0;  // all before it are complete
  uint32_t request = 0;
  const auto all_done = [&] {
    for (; next < handles.size(); ++next) {
      request = requests_->Resolve(handles[next]);
      if (request != 0 && !Advance(request)) {
        return false;
      }
    }
    return true;
  };
  if (!all_done()) {
    WaitUntil(all_done, PolicyFor(requests_->Slot(request).peer));
  }
}

int Client::WaitAny(std::span<const RequestHandle> handles, Completion* completion) {
  int found = -1;
  bool any = false;
  const auto any_done = [&] {
    any = false;
    for (size_t i = 0; i < handles.size(); ++i) {
      if (handles[i] == 0) {
        continue;
      }
      any = true;
      const uint32_t request = requests_->Resolve(handles[i]);
      if (request == 0 || Advance(request)) {
        found = static_cast<int>(i);
        return true;
      }
    }
    return !any;
  };
  WaitUntil(any_done, PolicyFor(shm::kAnySource));
  if (found >= 0) {
    const uint32_t request = requests_->Resolve(handles[static_cast<size_t>(found)]);
    if (request == 0) {
      *completion = {};
    } else {
      Collect(request, completion);
    }
  }
  return found;
}

}  // namespace ferry::client
