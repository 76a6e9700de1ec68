// Client: memory, and the ranks of the node. See client.h and front_end.h.
#include <cstdlib>

#include "client/rank/client.h"

namespace ferry::client {

Client::Client() {
  FrontEnd::messages = this;
  FrontEnd::queues = this;
  FrontEnd::memory = this;
  FrontEnd::peers = this;
}

void Client::AllowThreads() {
  if (!progress_->threads()) {
    receiver_->PostHeld();
    pool_->Share(true);
    progress_->SetThreads(true);
  }
}

void Client::RestrictThreads() {
  if (progress_->threads() && !threads_asked_for_) {
    progress_->SetThreads(false);
    pool_->Share(false);
  }
}

// ---- Calls of queues ----------------------------------------------------------------------------

Status Client::EnqueueCall(QueueHandle queue, HostCall call) {
  if (!threads_asked_for_) {
    KeepThreads();
  }
  return queues().EnqueueCall(queue, std::move(call));
}

// ---- Memory -------------------------------------------------------------------------------------

Status Client::CheckUnused(const void* memory, uint64_t size_bytes) {
  receiver_->PostHeld();
  return size_bytes != 0 && pool_->Uses(memory, size_bytes)
             ? Status(ErrorCode::kInvalidBuffer,
                      "a request that is not complete uses this memory; wait for it first")
             : Status();
}

// A rank that has memory which only streams reach sends by the daemons, unless its links carry
// that.
StatusOr<void*> Client::AllocateMemory(uint64_t size_bytes, MemoryKind kind, int device) {
  StatusOr<void*> memory = memory_->Allocate(size_bytes, kind, device);
  if (memory.ok() && memory_->HasByStream() && !progress_->LinksCarryDeviceMemory()) {
    ReturnLinks();
  }
  return memory;
}

Status Client::FreeMemory(void* pointer) {
  const uint64_t size_bytes = memory_->AllocationSize(pointer);
  FERRY_RETURN_IF_ERROR(CheckUnused(pointer, size_bytes));
  FERRY_RETURN_IF_ERROR(offloads_->CheckFree(pointer, size_bytes));
  if (memory_->IsDevice(pointer)) {  // a block of the heap is no region
    ForgetByLinks(pointer);
  }
  return memory_->Free(pointer);
}

Status Client::UnshareMemory(void* base) {
  FERRY_RETURN_IF_ERROR(CheckUnused(base, memory_->SharedSize(base)));
  ForgetByLinks(base);
  return memory_->Unshare(base);
}

uint32_t Client::Expose(void* base, uint64_t size_bytes, shm::ElementLock* lock) {
  return links_.has_value() ? links_->Expose(static_cast<std::byte*>(base), size_bytes, lock) : 0;
}

void Client::Unexpose(uint32_t segment) {
  if (segment != 0) {
    links_->Unexpose(segment);
  }
}

// Ranks with a direct link read and write no memory of it any more, if it is a region of its own.
void Client::ForgetByLinks(const void* base) {
  if (!links_.has_value()) {
    return;
  }
  const OwnRegion region = memory_->regions().Around(base);
  if (region && region.base == base) {
    links_->ForgetRegion(region.id);
  }
}

void* Client::TakeBounceBuffer(uint64_t size_bytes) {
  const StatusOr<void*> bounce_buffer =
      memory_->AllocateDeviceBounceBuffer(size_bytes, true, false);
  return bounce_buffer.ok() ? *bounce_buffer : nullptr;
}

bool Client::GiveBounceBuffer(void* bounce_buffer) {
  if (memory_->AllocationSize(bounce_buffer) == 0) {
    return false;
  }
  memory_->FreeBounceBuffer(bounce_buffer);
  return true;
}

// ---- Probes -------------------------------------------------------------------------------------

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
    error = receiver_->Take({envelope.size_bytes != 0 ? receive->buffer : nullptr,
                             envelope.size_bytes, envelope.source, envelope.tag, pattern.context},
                            &request);
    if (error != ErrorCode::kOk) {
      return error;
    }
    error = receiver_->TakeProbed(request, pattern, envelope);
    if (error == ErrorCode::kOk) {
      receive->handle = pool_->HandleOf(request);
      return error;
    }
    requests_->GiveUp(request);
    if (error != ErrorCode::kWouldBlock) {
      return error;
    }
  }
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

StatusOr<std::shared_ptr<std::byte>> Client::MapPeer(uint32_t rank, const shm::Location& where,
                                                     uint64_t size_bytes, bool* is_by_stream) {
  StatusOr<PeerMemory::ForGood> mapped = peer_memory_->MapForGood(rank, where, size_bytes);
  FERRY_RETURN_IF_ERROR(mapped.status());
  if (is_by_stream != nullptr) {
    *is_by_stream = mapped->by_stream;
  } else if (mapped->by_stream) {
    return Status(ErrorCode::kInvalidBuffer, "only streams reach that memory");
  }
  return mapped->memory;
}

Status Client::LetDevicesReach(const std::byte* base) {
  return memory_->SharedSize(base) != 0 ? memory_->LetDevicesReach(base)
                                        : peer_memory_->LetDevicesReach(base);
}

Status Client::LetKernelsReach(int device, const void* pointer) {
  gpu::GpuBackend* const backend = memory_->backend();
  return backend == nullptr ? Status(ErrorCode::kUnsupported, "no GPU backend is in use")
                            : backend->LetKernelsReach(device, pointer);
}

int Client::DeviceCount() const {
  const gpu::GpuBackend* const backend = memory_->backend();
  return backend == nullptr ? 0 : backend->device_count();
}

StatusOr<gpu::DeviceInfo> Client::DescribeDevice(int device) const {
  const gpu::GpuBackend* const backend = memory_->backend();
  return backend == nullptr ? Status(ErrorCode::kUnsupported, "no GPU backend is in use")
                            : backend->GetDeviceInfo(device);
}

StatusOr<StreamQueues::DeviceRing> Client::MakeRing(int device, uint32_t slots,
                                                    uint32_t completions) {
  const StatusOr<RingHandle> handle = matching_->rings().Make(device, slots, completions);
  FERRY_RETURN_IF_ERROR(handle.status());
  const StatusOr<void*> address = matching_->rings().AddressOf(*handle);
  FERRY_RETURN_IF_ERROR(address.status());
  return DeviceRing{*handle, *address};
}

}  // namespace ferry::client
