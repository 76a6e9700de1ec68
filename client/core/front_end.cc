// Client: what front ends need beyond ferry.h. See client.h and front_end.h.
#include <cstdlib>

#include "client/core/progress.h"

namespace ferry::client {

void Client::AllowThreads() {
  if (threads_) {
    return;
  }
  PostHeld();
  lease_.Unbias(Holder());
  requests_->Share(true);
  threads_ = true;
}

void Client::RestrictThreads() {
  if (!threads_ || threads_asked_for_) {
    return;
  }
  threads_ = false;
  requests_->Share(false);
  lease_.Bias(Holder());
}

Status Client::Prepare(Message* message, Use use) {
  if (memory_->IsAnyBufferPlain() && !offloads_->any()) [[likely]] {
    return {};
  }
  FERRY_RETURN_IF_ERROR(memory_->CheckBuffer(message->buffer, message->size_bytes));
  if (use == Use::kReceive) {
    return {};
  }
  offloads_->Redirect(&message->buffer, message->size_bytes);
  return use == Use::kSend ? offloads_->CheckSynchronized(message->buffer, message->size_bytes)
                           : Status();
}

ErrorCode Client::MakePersistentSend(const Message& message, RequestHandle* handle) {
  return MakePersistent(message, shm::RequestKind::kSend, handle);
}

ErrorCode Client::MakePersistentReceive(const Message& message, RequestHandle* handle) {
  return MakePersistent(message, shm::RequestKind::kReceive, handle);
}

StatusOr<QueueHandle> Client::MakeQueue(uint32_t type, const void* stream_address) {
  return queues_->Make(static_cast<QueueType>(type), stream_address);
}

bool Client::AdvanceProgram(RequestHandle program, ErrorCode* error) {
  const bool is_over = queues_->AdvanceByRank(program, error);
  if (is_over) {
    (void)FailureWords::Tell(*error);
  }
  return is_over;
}

bool Client::SendNow(const Message& message) {
  return memory_->IsAnyBufferPlain() && !offloads_->any() && SendEager(message);
}

bool Client::ReceiveNow(const Message& message, Completion* completion) {
  uint64_t message_bytes = 0;
  const uint32_t lane = engine_->LaneOf(message.peer);
  return held_.empty() && engine_->HasMessage(lane) && memory_->IsAnyBufferPlain() &&
         poison() == ErrorCode::kOk && TakeEager(message, lane, false, completion, &message_bytes);
}

// ---- Memory -------------------------------------------------------------------------------------

StatusOr<void*> Client::AllocateMemory(uint64_t size_bytes, MemoryKind kind, int device) {
  return memory_->Allocate(size_bytes, kind, device);
}

Status Client::FreeMemory(void* pointer) {
  PostHeld();
  const uint64_t size_bytes = memory_->AllocationSize(pointer);
  if (size_bytes != 0 && requests_->Uses(pointer, size_bytes)) {
    return {ErrorCode::kInvalidBuffer,
            "a request that is not complete uses this memory; wait for it first"};
  }
  FERRY_RETURN_IF_ERROR(offloads_->CheckFree(pointer, size_bytes));
  return memory_->Free(pointer);
}

void* Client::TakeStaging(uint64_t size_bytes) {
  const StatusOr<void*> block = memory_->AllocateShadow(size_bytes, true, false);
  return block.ok() ? *block : nullptr;
}

bool Client::GiveStaging(void* block) {
  if (memory_->AllocationSize(block) == 0) {
    return false;
  }
  memory_->FreeBounce(block);
  return true;
}

Status Client::Copy(void* destination, const void* source, uint64_t size_bytes) {
  return memory_->Copy(destination, source, size_bytes);
}

bool Client::CanReduce(int device, gpu::ReductionType type, gpu::ReductionOp op) {
  return memory_->CanReduce(device, type, op);
}

shm::Location Client::Locate(const void* pointer, uint64_t size_bytes) const {
  return memory_->regions().Find(pointer, size_bytes);
}

// ---- Looking and waiting ------------------------------------------------------------------------

// Between the look and the receive another thread may take the message; then we look again.
ErrorCode Client::ProbeMatched(const Message& pattern, bool block, MatchedReceive* receive) {
  for (;;) {
    ErrorCode error = Probe(pattern, block, &receive->envelope);
    if (error != ErrorCode::kOk) {
      return error;
    }
    const Completion& envelope = receive->envelope;
    if (envelope.size_bytes != 0) {
      void* const buffer = std::realloc(receive->buffer, envelope.size_bytes);
      if (buffer == nullptr) {
        return FailureWords::Tell(ErrorCode::kOutOfMemory);
      }
      receive->buffer = buffer;
    }
    uint32_t request = 0;
    error = Take({envelope.size_bytes != 0 ? receive->buffer : nullptr, envelope.size_bytes,
                  envelope.source, envelope.tag, pattern.context},
                 shm::RequestKind::kReceive, &request);
    if (error != ErrorCode::kOk) {
      return error;
    }
    error = TakeProbed(request, pattern, envelope);
    if (error == ErrorCode::kOk) {
      receive->handle = requests_->HandleOf(request);
      return error;
    }
    GiveUp(request);
    if (error != ErrorCode::kWouldBlock) {
      return error;
    }
  }
}

// Starts a receive of just this message. kWouldBlock: it is not the first one that matches.
ErrorCode Client::TakeProbed(uint32_t request, const Message& pattern, const Completion& envelope) {
  engine::Effects matched;
  const ErrorCode error = UnderLease([&](engine::Effects& effects) {
    engine::ProbeResult first;
    const ErrorCode found = engine_->Probe({pattern.context, pattern.peer, pattern.tag}, &first);
    if (found != ErrorCode::kOk) {
      return found;
    }
    if (first.source != envelope.source || first.tag != envelope.tag ||
        first.size_bytes != envelope.size_bytes) {
      return ErrorCode::kWouldBlock;
    }
    const ErrorCode started = engine_->StartReceive(request, effects);
    matched = effects;
    return started;
  });
  HandOver(matched);
  return error;
}

bool Client::IsComplete(RequestHandle handle) {
  const uint32_t request = requests_->Resolve(handle);
  return request == 0 || Advance(request);
}

bool Client::Poll() {
  const bool found = PollOnce();
  return HelpBackground() || found;
}

void Client::WaitFor(bool (*done)(void*), void* argument, int32_t peer, uint64_t end_ns) {
  const auto is_over = [&] { return done(argument) || poison() != ErrorCode::kOk; };
  if (end_ns == UINT64_MAX) {
    WaitUntil(is_over, PolicyFor(peer));
    return;
  }
  // The coarse clock is at most a tick of the kernel late; sleeps end at end_ns itself.
  WaitUntil([&] { return is_over() || CoarseMonotonicNs() >= end_ns; }, PolicyFor(peer), nullptr,
            end_ns);
}

// ---- The ranks of this node ---------------------------------------------------------------------

ErrorCode Client::CopyFromPeer(uint32_t rank, const shm::Location& from, void* to,
                               uint64_t size_bytes) {
  const engine::Reach own{.mapped = static_cast<std::byte*>(to), .by_stream = IsByStream(to)};
  const Status copied =
      peer_memory_->CopyWithPeer(rank, from, own, size_bytes, PeerMemory::Direction::kFromPeer);
  return FailureWords::Tell(copied.code(), copied.message());
}

ErrorCode Client::CopyToPeer(uint32_t rank, const shm::Location& to, const void* from,
                             uint64_t size_bytes) {
  const engine::Reach own{.mapped = static_cast<std::byte*>(const_cast<void*>(from)),
                          .by_stream = IsByStream(from)};
  const Status copied =
      peer_memory_->CopyWithPeer(rank, to, own, size_bytes, PeerMemory::Direction::kToPeer);
  return FailureWords::Tell(copied.code(), copied.message());
}

bool Client::IsPrivateMemoryReachable(uint32_t rank) const {
  return peer_memory_->IsPrivateMemoryReachable(rank);
}

StatusOr<std::shared_ptr<std::byte>> Client::MapPeer(uint32_t rank, const shm::Location& where,
                                                     uint64_t size_bytes) {
  StatusOr<PeerMemory::ForGood> mapped = peer_memory_->MapForGood(rank, where, size_bytes);
  FERRY_RETURN_IF_ERROR(mapped.status());
  if (mapped->by_stream) {
    return Status(ErrorCode::kInvalidBuffer, "only streams reach that memory");
  }
  return mapped->memory;
}

ErrorCode Client::PeerState(uint32_t rank) const {
  const auto death = static_cast<ErrorCode>(shm::LoadAcquire(view_.layout->peers[rank].dead));
  return death != ErrorCode::kOk ? death : poison();
}

void Client::WakePeer(uint32_t rank) { shm::Wake(peers_.Wake(rank)).Publish(); }

}  // namespace ferry::client
