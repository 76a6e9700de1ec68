// The C API of ferry.h for memory over client/api: allocations, copies, offloaded send buffers. It
// only checks arguments and turns codes into sentences.
#include "client/c_api/running.h"
#include "client/rank/client.h"
#include "include/ferry/ferry.h"

namespace {

using ferry::ErrorCode;
using ferry::Status;
using ferry::client::Client;
using ferry::client::WithClient;

// For calls that involve no message: they, too, fail once the rank is poisoned.
template <typename Use>
int WithHealthyClient(Use&& use) {
  return WithClient([&](Client& client) -> Status {
    FERRY_RETURN_IF_ERROR(client.Health());
    return use(client);
  });
}

}  // namespace

extern "C" {

int ferry_alloc(size_t size_bytes, ferry_memory_kind kind, int device, void** pointer) {
  return WithClient([&](Client& client) -> Status {
    if (pointer == nullptr || kind < FERRY_MEMORY_HOST || kind > FERRY_MEMORY_DEVICE) {
      return {ErrorCode::kInvalidArgument,
              "the kind is not one of FERRY_MEMORY_*, or the address for the result is null"};
    }
    auto memory =
        client.AllocateMemory(size_bytes, static_cast<ferry::client::MemoryKind>(kind), device);
    FERRY_RETURN_IF_ERROR(memory.status());
    *pointer = *memory;
    return {};
  });
}

int ferry_free(void* pointer) {
  return WithClient(
      [&](Client& client) { return pointer == nullptr ? Status() : client.FreeMemory(pointer); });
}

int ferry_memcpy(void* destination, const void* source, size_t size_bytes) {
  return WithClient([&](Client& client) -> Status {
    if (size_bytes == 0) {
      return {};
    }
    if (destination == nullptr || source == nullptr) {
      return {ErrorCode::kInvalidBuffer, "source or destination is null"};
    }
    return client.memory().Copy(destination, source, size_bytes);
  });
}

int ferry_register(void* pointer, size_t size_bytes) {
  return WithClient([&](Client& client) -> Status {
    if (pointer == nullptr || size_bytes == 0) {
      return {ErrorCode::kInvalidArgument, "the range is empty"};
    }
    return client.memory().Register(pointer, size_bytes);
  });
}

int ferry_deregister(void* pointer) {
  return WithClient([&](Client& client) -> Status {
    FERRY_RETURN_IF_ERROR(client.CheckUnused(pointer, client.memory().RegistrationSize(pointer)));
    return client.memory().Deregister(pointer);
  });
}

int ferry_offload_register(const void* buffer, size_t size_bytes, ferry_offload* offload) {
  return WithHealthyClient([&](Client& client) -> Status {
    if (offload == nullptr) {
      return {ErrorCode::kInvalidArgument, "the address of the handle is null"};
    }
    *offload = FERRY_OFFLOAD_NULL;
    auto handle = client.offloads().Register(const_cast<void*>(buffer), size_bytes);
    FERRY_RETURN_IF_ERROR(handle.status());
    *offload = *handle;
    return {};
  });
}

int ferry_offload_sync(ferry_offload offload, size_t offset_bytes, size_t size_bytes) {
  static_assert(FERRY_OFFLOAD_TO_END == ferry::client::Offloads::kToEnd);
  return WithHealthyClient([&](Client& client) {
    return client.offloads().Synchronize(offload, offset_bytes, size_bytes);
  });
}

int ferry_offload_deregister(ferry_offload* offload) {
  return WithHealthyClient([&](Client& client) -> Status {
    if (offload == nullptr) {
      return {ErrorCode::kInvalidArgument, "the address of the handle is null"};
    }
    FERRY_RETURN_IF_ERROR(client.offloads().Deregister(*offload));
    *offload = FERRY_OFFLOAD_NULL;
    return {};
  });
}

}  // extern "C"
