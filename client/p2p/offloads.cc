#include "client/p2p/offloads.h"

#include <string>

namespace ferry::client {
namespace {

Status NotRegistered() {
  return {ErrorCode::kNotFound,
          "the handle names no offloaded send buffer: deregistered before, or not what "
          "ferry_offload_register returned?"};
}

}  // namespace

Offloads::Offloads(uint64_t min_bytes, Memory* memory, const RequestPool* requests,
                   const shm::Statistics& statistics)
    : min_bytes_(min_bytes), memory_(memory), requests_(requests), statistics_(statistics) {}

StatusOr<OffloadHandle> Offloads::Register(void* buffer, uint64_t size_bytes) {
  if (buffer == nullptr || size_bytes == 0) {
    return Status(ErrorCode::kInvalidArgument, "the buffer is null or empty");
  }
  if (size_bytes - 1 > UINTPTR_MAX - reinterpret_cast<uintptr_t>(buffer)) {
    return Status(ErrorCode::kInvalidBuffer,
                  std::to_string(size_bytes) + " bytes from this address are no range of memory");
  }
  FERRY_RETURN_IF_ERROR(memory_->LookAt(buffer, size_bytes));
  const Status overlaps = {ErrorCode::kAlreadyExists,
                           "the range overlaps an offloaded send buffer; deregister that first "
                           "(ferry_offload_deregister)"};
  {
    std::lock_guard lock(mutex_);
    if (table_.Overlaps(buffer, size_bytes)) {
      return overlaps;
    }
  }
  StatusOr<void*> bounce_buffer =
      memory_->AllocateDeviceBounceBuffer(size_bytes, memory_->IsDevice(buffer), true);
  FERRY_RETURN_IF_ERROR(bounce_buffer.status());
  std::lock_guard lock(mutex_);
  if (table_.Overlaps(buffer, size_bytes)) {  // another thread was faster
    memory_->FreeBounceBuffer(*bounce_buffer);
    return overlaps;
  }
  const OffloadHandle handle = table_.Add(buffer, size_bytes, *bounce_buffer);
  any_.store(true, std::memory_order_relaxed);
  return handle;
}

// Checks what must hold before bytes are synchronised. Call it with the lock held.
StatusOr<OffloadedBuffer*> Offloads::Begin(OffloadHandle handle, uint64_t offset,
                                           uint64_t* size_bytes) {
  OffloadedBuffer* const buffer = table_.Find(handle);
  if (buffer == nullptr) {
    return NotRegistered();
  }
  if (offset <= buffer->size_bytes && *size_bytes == kToEnd) {
    *size_bytes = buffer->size_bytes - offset;
  }
  if (offset > buffer->size_bytes || *size_bytes > buffer->size_bytes - offset) {
    return Status(ErrorCode::kInvalidArgument,
                  (*size_bytes == kToEnd ? "the rest" : std::to_string(*size_bytes) + " bytes") +
                      " from offset " + std::to_string(offset) +
                      " on are to be synchronised, but the buffer has " +
                      std::to_string(buffer->size_bytes) + " bytes");
  }
  if (*size_bytes != 0 && requests_->Uses(buffer->bounce_buffer + offset, *size_bytes)) {
    return Status(ErrorCode::kInvalidBuffer,
                  "a send that is not complete reads what was synchronised before; wait for it "
                  "first, or synchronise other bytes");
  }
  return buffer;
}

Status Offloads::Synchronize(OffloadHandle handle, uint64_t offset, uint64_t size_bytes) {
  OffloadedBuffer* buffer = nullptr;
  {
    std::lock_guard lock(mutex_);
    StatusOr<OffloadedBuffer*> begun = Begin(handle, offset, &size_bytes);
    FERRY_RETURN_IF_ERROR(begun.status());
    buffer = *begun;
    if (size_bytes == 0) {
      return {};
    }
    ++buffer->synchronizing;  // so it stays
    buffer->synchronized.Remove(offset, offset + size_bytes);
  }
  Status copied = memory_->Copy(buffer->bounce_buffer + offset, buffer->begin + offset, size_bytes);
  std::lock_guard lock(mutex_);
  --buffer->synchronizing;
  if (!copied.ok()) {
    buffer->synchronized.Remove(offset, offset + size_bytes);  // another thread may have added some
    return copied;
  }
  buffer->synchronized.Add(offset, offset + size_bytes);
  statistics_.AddShared(shm::Statistic::kOffloadCopies);
  statistics_.AddShared(shm::Statistic::kOffloadBytes, size_bytes);
  return {};
}

Status Offloads::Deregister(OffloadHandle handle) {
  std::lock_guard lock(mutex_);
  OffloadedBuffer* const buffer = table_.Find(handle);
  if (buffer == nullptr) {
    return NotRegistered();
  }
  if (buffer->synchronizing != 0) {
    return {ErrorCode::kInvalidBuffer, "another thread synchronises the buffer at this moment"};
  }
  if (requests_->Holds(buffer->bounce_buffer, buffer->size_bytes)) {
    return {ErrorCode::kInvalidBuffer,
            "a request sends from the offloaded buffer: wait for it, or, if it is a persistent "
            "one, free it first"};
  }
  memory_->FreeBounceBuffer(buffer->bounce_buffer);
  table_.Remove(handle);
  any_.store(table_.size() != 0, std::memory_order_relaxed);
  return {};
}

void Offloads::Redirect(void** buffer, uint64_t size_bytes) const {
  if (!any() || size_bytes == 0) {
    return;
  }
  std::lock_guard lock(mutex_);
  if (const OffloadedBuffer* around = table_.Around(*buffer, size_bytes); around != nullptr) {
    *buffer = around->bounce_buffer + (static_cast<std::byte*>(*buffer) - around->begin);
  }
}

Status Offloads::CheckSynchronized(const void* buffer, uint64_t size_bytes) const {
  if (!any() || size_bytes == 0) {
    return {};
  }
  std::lock_guard lock(mutex_);
  const OffloadedBuffer* const around = table_.ByBounceBuffer(buffer);
  if (around == nullptr) {
    return {};
  }
  const auto begin =
      static_cast<uint64_t>(static_cast<const std::byte*>(buffer) - around->bounce_buffer);
  const uint64_t missing = around->synchronized.FirstMissing(begin, begin + size_bytes);
  return missing == begin + size_bytes
             ? Status()
             : Status(ErrorCode::kInvalidBuffer,
                      "byte " + std::to_string(missing) +
                          " of the offloaded send buffer was not synchronised since it was "
                          "registered; call ferry_offload_sync first");
}

Status Offloads::CheckFree(const void* memory, uint64_t size_bytes) const {
  if (!any()) {
    return {};
  }
  std::lock_guard lock(mutex_);
  return table_.Overlaps(memory, size_bytes)
             ? Status(ErrorCode::kInvalidBuffer,
                      "this memory is an offloaded send buffer, or holds one; call "
                      "ferry_offload_deregister first")
             : Status();
}

void* Offloads::TakeBounceBuffer(uint64_t size_bytes, bool must) {
  const bool kept = min_bytes_ != 0 && size_bytes >= min_bytes_;
  const StatusOr<void*> bounce_buffer = memory_->AllocateDeviceBounceBuffer(size_bytes, kept, must);
  return bounce_buffer.ok() ? *bounce_buffer : nullptr;
}

ErrorCode Offloads::CopyIn(void* bounce_buffer, const void* source, uint64_t size_bytes) {
  const ErrorCode error = memory_->CopyFrom(bounce_buffer, source, size_bytes);
  if (error == ErrorCode::kOk) {
    statistics_.AddShared(shm::Statistic::kOffloadCopies);
    statistics_.AddShared(shm::Statistic::kOffloadBytes, size_bytes);
  }
  return error;
}

}  // namespace ferry::client
