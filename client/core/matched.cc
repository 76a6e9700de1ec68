// Client: matched persistent requests, which client/triggered implements. See client.h.
#include "client/core/progress.h"
#include "shm/atomic.h"

namespace ferry::client {

using shm::RequestKind;
using shm::RequestLayout;
using shm::RequestState;

void Client::MakeChannels() {
  Channels::Parts parts{};
  parts.rank = view_.rank;
  parts.peers = &peers_;
  parts.requests = requests_.get();
  parts.memory = memory_.get();
  parts.peer_memory = peer_memory_.get();
  parts.control = &control_;
  parts.ring_daemon = [this] {
    // Pairs with the daemon's look at it, also before it sleeps.
    shm::FetchAdd(view_.layout->channels_armed, uint64_t{1}, std::memory_order_seq_cst);
    CallWorker({}, true);
  };
  parts.poison = [this] { return poison(); };
  parts.statistics = statistics_;
  parts.cell_max_bytes = options_.matched_cell_bytes;
  parts.cell_count = static_cast<uint32_t>(options_.matched_cells);
  channels_ = std::make_unique<Channels>(std::move(parts));
  queues_ = std::make_unique<Queues>(channels_.get(), memory_.get());
  DeviceRings::Parts rings{};
  rings.memory = memory_.get();
  rings.session = view_.layout;
  rings.ring_daemon = [this] {
    // Pairs with Rings::Look.
    shm::FetchAdd(view_.layout->rings_changed, uint64_t{1}, std::memory_order_seq_cst);
    CallWorker({}, true);
  };
  rings.poison = [this] { return poison(); };
  rings.timeout_ns = options_.attach_timeout_ms * 1'000'000;
  rings_ = std::make_unique<DeviceRings>(std::move(rings));
}

// ---- Matching -----------------------------------------------------------------------------------

Status Client::CheckMatchable(RequestHandle handle, uint32_t* request) const {
  *request = requests_->Resolve(handle);
  if (*request == 0) {
    return {ErrorCode::kInvalidRequest, "the handle names no request"};
  }
  const RequestLayout& slot = requests_->Slot(*request);
  if ((slot.flags & shm::kRequestPersistent) == 0) {
    return {ErrorCode::kInvalidRequest, "only persistent requests can be matched"};
  }
  if (slot.peer < 0 || slot.tag < 0) {
    return {ErrorCode::kInvalidRequest,
            "a receive from any source, or with any tag, has no partner for life"};
  }
  if (shm::LoadAcquire(slot.state) != static_cast<uint32_t>(RequestState::kInactive) ||
      IsHeld(slot)) {
    return {ErrorCode::kInvalidRequest, "the request is active: wait for it first"};
  }
  const Channel* const channel = channels_->Find(*request);
  if (channel != nullptr && channel->stage == Channel::Stage::kFailed) {
    return {channel->error, "its match has failed: free it and make it anew"};
  }
  return {};
}

Status Client::BeginMatch(std::span<const RequestHandle> requests, RequestHandle* match) {
  *match = 0;
  PostHeld();
  std::vector<uint32_t> slots(requests.size());
  for (size_t i = 0; i < requests.size(); ++i) {
    if (Status status = CheckMatchable(requests[i], &slots[i]); !status.ok()) {
      return {status.code(), "request " + std::to_string(i) + ": " + status.message()};
    }
  }
  uint32_t request = 0;
  if (const ErrorCode error = TakeSlot(&request); error != ErrorCode::kOk) {
    return Explain(error);
  }
  RequestLayout& slot = requests_->Slot(request);
  slot.kind = static_cast<uint32_t>(RequestKind::kMatch);
  slot.peer = slot.tag = slot.status_source = slot.status_tag = shm::kAnySource;
  slot.size_bytes = slot.message_bytes = slot.user_address = 0;
  slot.buffer = {};
  shm::StoreRelaxed(slot.error, 0);
  if (Status status = channels_->Offer(slots); !status.ok()) {
    requests_->GiveBack(request);
    return status;
  }
  {
    std::lock_guard lock(matches_mutex_);
    matches_[request] = std::move(slots);
  }
  shm::StoreRelease(slot.state, static_cast<uint32_t>(RequestState::kMatched));
  *match = requests_->HandleOf(request);
  return {};
}

Status Client::IsMatched(RequestHandle handle, bool* matched) {
  const uint32_t request = requests_->Resolve(handle);
  if (request == 0 || (requests_->Slot(request).flags & shm::kRequestPersistent) == 0) {
    return {ErrorCode::kInvalidRequest, "only persistent requests can be matched"};
  }
  Channel* const channel = channels_->Find(request);
  *matched = channel != nullptr && channels_->Settle(*channel) == ErrorCode::kOk;
  return {};
}

// Advances a match request: it is over once all are matched, or one cannot be.
bool Client::AdvanceMatch(uint32_t request) {
  std::lock_guard lock(matches_mutex_);
  const auto found = matches_.find(request);
  if (found == matches_.end()) {
    return true;
  }
  ErrorCode result = ErrorCode::kOk;
  for (const uint32_t member : found->second) {
    Channel* const channel = channels_->Find(member);
    // A request that was freed meanwhile is nobody's partner any more.
    const ErrorCode error =
        channel == nullptr ? ErrorCode::kInvalidRequest : channels_->Settle(*channel);
    if (error == ErrorCode::kWouldBlock) {
      result = result == ErrorCode::kOk ? error : result;
    } else if (error != ErrorCode::kOk &&
               (result == ErrorCode::kOk || result == ErrorCode::kWouldBlock)) {
      result = error;
    }
  }
  if (result == ErrorCode::kWouldBlock) {
    return false;
  }
  matches_.erase(found);
  RequestLayout& slot = requests_->Slot(request);
  shm::StoreRelaxed(slot.error, static_cast<int32_t>(result));
  shm::StoreRelease(slot.state, static_cast<uint32_t>(RequestState::kComplete));
  return true;
}

// ---- Starting and ending ------------------------------------------------------------------------

// The slot is that of an inactive persistent request.
ErrorCode Client::StartPaired(uint32_t request) {
  Channel& channel = *channels_->Find(request);
  if (channel.IsEnqueued()) {
    return ErrorCode::kInvalidRequest;
  }
  if (const ErrorCode error = channels_->Start(channel); error != ErrorCode::kOk) {
    return FailureWords::Tell(error);
  }
  BeginPaired(request, channel);
  return ErrorCode::kOk;
}

// Makes the request active for the rank.
void Client::BeginPaired(uint32_t request, const Channel& channel) {
  RequestLayout& slot = requests_->Slot(request);
  slot.message_bytes = channel.size_bytes;
  shm::StoreRelaxed(slot.error, 0);
  shm::StoreRelease(slot.state, static_cast<uint32_t>(RequestState::kMatched));
}

StatusOr<shm::Location> Client::PrepareStart(RequestHandle handle) {
  const uint32_t request = requests_->Resolve(handle);
  if (request == 0) {
    return Status(ErrorCode::kInvalidRequest,
                  "ferry_ring_prepare_start: the handle names no request");
  }
  Channel* const channel = channels_->Find(request);
  if (channel != nullptr) {
    (void)channels_->Settle(*channel);
  }
  FERRY_RETURN_IF_ERROR(channels_->CheckIdle(request));
  FERRY_RETURN_IF_ERROR(Channels::CheckArm(*channel));
  channels_->Arm(*channel);
  BeginPaired(request, *channel);
  return Locate(channel->end, sizeof(*channel->end));
}

bool Client::AdvanceMatched(uint32_t request) {
  RequestLayout& slot = requests_->Slot(request);
  if (slot.kind == static_cast<uint32_t>(RequestKind::kMatch)) {
    return AdvanceMatch(request);
  }
  ErrorCode error = ErrorCode::kOk;
  if (!channels_->IsOver(*channels_->Find(request), &error)) {
    return false;
  }
  channels_->NoteOver();
  shm::StoreRelaxed(slot.error, static_cast<int32_t>(error));
  shm::StoreRelease(slot.state, static_cast<uint32_t>(RequestState::kComplete));
  return true;
}

// ---- Queues -------------------------------------------------------------------------------------

bool Client::IsEnqueued(RequestHandle handle) const {
  if (Queues::IsProgram(handle)) {
    return queues_->IsProgramEnqueued(handle);
  }
  const uint32_t request = requests_->Resolve(handle);
  return request != 0 && (requests_->Slot(request).flags & shm::kRequestPaired) != 0 &&
         channels_->Find(request)->IsEnqueued();
}

StatusOr<std::vector<Queues::Item>> Client::ResolveAll(
    std::span<const RequestHandle> handles) const {
  std::vector<Queues::Item> items(handles.size());
  for (size_t i = 0; i < handles.size(); ++i) {
    if (Queues::IsProgram(handles[i])) {
      items[i].program = handles[i];
      continue;
    }
    items[i].request = requests_->Resolve(handles[i]);
    if (items[i].request == 0) {
      return Status(ErrorCode::kInvalidRequest,
                    "handle " + std::to_string(i) + " names no request");
    }
    if (Channel* const channel = channels_->Find(items[i].request); channel != nullptr) {
      (void)channels_->Settle(*channel);
    }
  }
  return items;
}

Status Client::EnqueueStart(QueueHandle queue, std::span<const RequestHandle> requests) {
  StatusOr<std::vector<Queues::Item>> items = ResolveAll(requests);
  return items.ok() ? queues_->EnqueueStart(queue, *items) : items.status();
}

Status Client::EnqueueWait(QueueHandle queue, std::span<const RequestHandle> requests) {
  StatusOr<std::vector<Queues::Item>> items = ResolveAll(requests);
  return items.ok() ? queues_->EnqueueWait(queue, *items) : items.status();
}

StatusOr<RequestHandle> Client::MakeProgram(std::string name,
                                            std::span<const RequestHandle> requests,
                                            std::vector<ProgramStep> steps) {
  std::vector<uint32_t> slots(requests.size());
  for (size_t i = 0; i < requests.size(); ++i) {
    slots[i] = requests_->Resolve(requests[i]);
    if (slots[i] == 0) {
      return Status(ErrorCode::kInvalidRequest,
                    "handle " + std::to_string(i) + " names no request");
    }
  }
  return queues_->MakeProgram(std::move(name), std::move(slots), std::move(steps));
}

}  // namespace ferry::client
