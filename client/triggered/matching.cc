#include "client/triggered/matching.h"

#include <string>
#include <utility>

#include "shm/atomic.h"

namespace ferry::client {

using shm::RequestKind;
using shm::RequestLayout;
using shm::RequestState;

Matching::Matching(Progress* progress, Requests* requests, Memory* memory, PeerMemory* peer_memory,
                   AttachConnection* attach, const shm::Statistics& statistics,
                   const config::Options& options)
    : progress_(*progress),
      requests_(*requests),
      regions_(memory->regions()),
      pairs_(PairParts(memory, peer_memory, attach, statistics, options)),
      queues_(&pairs_, memory),
      rings_(RingParts(memory, options)) {}

Pairs::Parts Matching::PairParts(Memory* memory, PeerMemory* peer_memory, AttachConnection* attach,
                                 const shm::Statistics& statistics,
                                 const config::Options& options) {
  Pairs::Parts parts{};
  parts.rank = progress_.view().rank;
  parts.peers = &progress_.peers();
  parts.requests = &requests_.pool();
  parts.memory = memory;
  parts.peer_memory = peer_memory;
  parts.attach = attach;
  parts.ring_daemon = [this] {
    // Pairs with the daemon's look at it, also before it sleeps.
    shm::FetchAdd(progress_.view().layout->pairs_armed, uint64_t{1}, std::memory_order_seq_cst);
    progress_.RingDaemon();
  };
  parts.poison = [this] { return progress_.poison(); };
  parts.statistics = statistics;
  parts.cell_max_bytes = options.matched_cell_bytes;
  parts.cell_count = static_cast<uint32_t>(options.matched_cells);
  return parts;
}

DeviceRings::Parts Matching::RingParts(Memory* memory, const config::Options& options) {
  DeviceRings::Parts parts{};
  parts.memory = memory;
  parts.session = progress_.view().layout;
  parts.ring_daemon = [this] {
    // Pairs with Rings::Look.
    shm::FetchAdd(progress_.view().layout->rings_changed, uint64_t{1}, std::memory_order_seq_cst);
    progress_.RingDaemon();
  };
  parts.poison = [this] { return progress_.poison(); };
  parts.timeout_ns = options.attach_timeout_ms * 1'000'000;
  return parts;
}

// ---- Matching -----------------------------------------------------------------------------------

Status Matching::CheckMatchable(RequestHandle handle, uint32_t* request) const {
  *request = requests_.pool().Resolve(handle);
  if (*request == 0) {
    return {ErrorCode::kInvalidRequest, "the handle names no request"};
  }
  const RequestLayout& slot = requests_.Slot(*request);
  if ((slot.flags & shm::kRequestPersistent) == 0) {
    return {ErrorCode::kInvalidRequest, "only persistent requests can be matched"};
  }
  if (slot.peer < 0 || slot.tag < 0) {
    return {ErrorCode::kInvalidRequest,
            "a receive from any source, or with any tag, has no partner for life"};
  }
  if (!Requests::HasState(slot, RequestState::kInactive)) {
    return {ErrorCode::kInvalidRequest, "the request is active: wait for it first"};
  }
  const Pair* const pair = pairs_.Find(*request);
  if (pair != nullptr && pair->stage == Pair::Stage::kFailed) {
    return {pair->error, "its match has failed: free it and make it anew"};
  }
  return {};
}

Status Matching::Begin(std::span<const RequestHandle> requests, RequestHandle* match) {
  *match = 0;
  std::vector<uint32_t> slots(requests.size());
  for (size_t i = 0; i < requests.size(); ++i) {
    if (Status status = CheckMatchable(requests[i], &slots[i]); !status.ok()) {
      return {status.code(), "request " + std::to_string(i) + ": " + status.message()};
    }
  }
  uint32_t request = 0;
  if (const ErrorCode error = requests_.TakeSlot(&request); error != ErrorCode::kOk) {
    return {error, ""};
  }
  RequestLayout& slot = requests_.Slot(request);
  slot.kind = static_cast<uint32_t>(RequestKind::kMatch);
  slot.peer = slot.tag = slot.status_source = slot.status_tag = shm::kAnySource;
  slot.message_bytes = 0;
  // Of a match: 1 + the rank of the first partner that has made no request yet; 0: not known.
  shm::StoreRelaxed(slot.match_entry, 0U);
  shm::StoreRelaxed(slot.size_bytes, 0);  // as Requests::Fill
  shm::StoreRelaxed(slot.user_address, 0);
  slot.buffer = {};
  shm::StoreRelaxed(slot.error, 0);
  if (Status status = pairs_.Offer(slots); !status.ok()) {
    requests_.pool().GiveBack(request);
    return status;
  }
  {
    std::lock_guard lock(mutex_);
    matches_[request] = std::move(slots);
  }
  Requests::SetState(slot, RequestState::kMatched);
  *match = requests_.pool().HandleOf(request);
  return {};
}

Status Matching::IsMatched(RequestHandle handle, bool* matched) {
  const uint32_t request = requests_.pool().Resolve(handle);
  if (request == 0 || (requests_.Slot(request).flags & shm::kRequestPersistent) == 0) {
    return {ErrorCode::kInvalidRequest, "only persistent requests can be matched"};
  }
  Pair* const pair = pairs_.Find(request);
  *matched = pair != nullptr && pairs_.Settle(*pair) == ErrorCode::kOk;
  return {};
}

// Advances a match request: it is over once all are matched, or one cannot be.
bool Matching::AdvanceMatch(uint32_t request) {
  std::lock_guard lock(mutex_);
  const auto found = matches_.find(request);
  if (found == matches_.end()) {
    return true;
  }
  ErrorCode result = ErrorCode::kOk;
  uint32_t awaited = 0;
  for (const uint32_t member : found->second) {
    Pair* const pair = pairs_.Find(member);
    // A request that was freed meanwhile has no partner any more.
    const ErrorCode error = pair == nullptr ? ErrorCode::kInvalidRequest : pairs_.Settle(*pair);
    if (error == ErrorCode::kWouldBlock) {
      awaited = awaited == 0 ? pair->peer + 1 : awaited;
      result = result == ErrorCode::kOk ? error : result;
    } else if (error != ErrorCode::kOk &&
               (result == ErrorCode::kOk || result == ErrorCode::kWouldBlock)) {
      result = error;
    }
  }
  if (result == ErrorCode::kWouldBlock) {
    shm::StoreRelaxed(requests_.Slot(request).match_entry, awaited);  // for `ferryctl why`
    return false;
  }
  matches_.erase(found);
  Requests::Complete(requests_.Slot(request), result);
  return true;
}

// ---- Starting and ending ------------------------------------------------------------------------

// The slot is that of an inactive persistent request.
ErrorCode Matching::Start(uint32_t request) {
  Pair& pair = *pairs_.Find(request);
  if (pair.IsEnqueued()) {
    return ErrorCode::kInvalidRequest;
  }
  if (const ErrorCode error = pairs_.Start(pair); error != ErrorCode::kOk) {
    return FailureWords::Tell(error);
  }
  MakeActive(request, pair);
  return ErrorCode::kOk;
}

// Makes the request active for the rank.
void Matching::MakeActive(uint32_t request, const Pair& pair) {
  RequestLayout& slot = requests_.Slot(request);
  slot.message_bytes = pair.size_bytes;
  shm::StoreRelaxed(slot.error, 0);
  Requests::SetState(slot, RequestState::kMatched);
}

// The pair of a request of which a device may make a start.
StatusOr<Pair*> Matching::FindToArm(RequestHandle handle, const char* call) {
  const uint32_t request = requests_.pool().Resolve(handle);
  if (request == 0) {
    return Status(ErrorCode::kInvalidRequest, std::string(call) + ": the handle names no request");
  }
  Pair* const pair = pairs_.Find(request);
  if (pair != nullptr) {
    (void)pairs_.Settle(*pair);
  }
  FERRY_RETURN_IF_ERROR(pairs_.CheckIdle(request));
  FERRY_RETURN_IF_ERROR(Pairs::CheckArm(*pair));
  return pair;
}

StatusOr<shm::Location> Matching::PrepareStart(RequestHandle handle) {
  StatusOr<Pair*> found = FindToArm(handle, "ferry_ring_prepare_start");
  FERRY_RETURN_IF_ERROR(found.status());
  Pair& pair = **found;
  pairs_.Arm(pair);
  MakeActive(pair.request, pair);
  return regions_.Find(pair.end, sizeof(*pair.end));
}

StatusOr<Matching::KernelStart> Matching::PrepareKernelStart(RequestHandle handle) {
  StatusOr<Pair*> found = FindToArm(handle, "ferry_kernel_prepare_start");
  FERRY_RETURN_IF_ERROR(found.status());
  Pair& pair = **found;
  if (pairs_.PageFor(pair, pair.starts + 1) == nullptr) {
    return Status(ErrorCode::kUnsupported,
                  "no page of the network card's counter can be stored to for this request, or not "
                  "before its first message: a kernel starts it through a ring "
                  "(ferry_ring_prepare_start)");
  }
  pairs_.Arm(pair);
  MakeActive(pair.request, pair);
  return KernelStart{pair.page, &pair.end->done.value, pair.starts};
}

bool Matching::Advance(uint32_t request) {
  RequestLayout& slot = requests_.Slot(request);
  if (slot.kind == static_cast<uint32_t>(RequestKind::kMatch)) {
    return AdvanceMatch(request);
  }
  ErrorCode error = ErrorCode::kOk;
  if (!pairs_.IsOver(*pairs_.Find(request), &error)) {
    return false;
  }
  pairs_.NoteOver();
  Requests::Complete(slot, error);
  return true;
}

// ---- Queues -------------------------------------------------------------------------------------

bool Matching::IsEnqueued(RequestHandle handle) {
  if (Queues::IsProgram(handle)) {
    return queues_.IsProgramEnqueued(handle);
  }
  const uint32_t request = requests_.pool().Resolve(handle);
  return request != 0 && (requests_.Slot(request).flags & shm::kRequestPaired) != 0 &&
         pairs_.Find(request)->IsEnqueued();
}

StatusOr<std::vector<Queues::Item>> Matching::ResolveAll(std::span<const RequestHandle> handles) {
  std::vector<Queues::Item> items(handles.size());
  for (size_t i = 0; i < handles.size(); ++i) {
    if (Queues::IsProgram(handles[i])) {
      items[i].program = handles[i];
      continue;
    }
    items[i].request = requests_.pool().Resolve(handles[i]);
    if (items[i].request == 0) {
      return Status(ErrorCode::kInvalidRequest,
                    "handle " + std::to_string(i) + " names no request");
    }
    if (Pair* const pair = pairs_.Find(items[i].request); pair != nullptr) {
      (void)pairs_.Settle(*pair);
    }
  }
  return items;
}

Status Matching::EnqueueStart(QueueHandle queue, std::span<const RequestHandle> requests) {
  StatusOr<std::vector<Queues::Item>> items = ResolveAll(requests);
  return items.ok() ? queues_.EnqueueStart(queue, *items) : items.status();
}

Status Matching::EnqueueWait(QueueHandle queue, std::span<const RequestHandle> requests) {
  StatusOr<std::vector<Queues::Item>> items = ResolveAll(requests);
  return items.ok() ? queues_.EnqueueWait(queue, *items) : items.status();
}

StatusOr<RequestHandle> Matching::MakeProgram(std::string name,
                                              std::span<const RequestHandle> requests,
                                              std::vector<ProgramStep> steps) {
  std::vector<uint32_t> slots(requests.size());
  for (size_t i = 0; i < requests.size(); ++i) {
    slots[i] = requests_.pool().Resolve(requests[i]);
    if (slots[i] == 0) {
      return Status(ErrorCode::kInvalidRequest,
                    "handle " + std::to_string(i) + " names no request");
    }
  }
  return queues_.MakeProgram(std::move(name), std::move(slots), std::move(steps));
}

}  // namespace ferry::client
