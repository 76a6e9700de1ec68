// The C API of device_ring.h over client/triggered/device_rings. It only checks arguments and turns
// codes into sentences.
#include <string>

#include "client/c_api/running.h"
#include "include/ferry/device_ring.h"
#include "shm/layout/counter_layout.h"

namespace {

using ferry::ErrorCode;
using ferry::Status;
using ferry::client::Client;
using ferry::client::WithClient;

static_assert(sizeof(ferry_ring_counter) == sizeof(ferry::shm::CounterLayout));

// WithClient, for a call that must store its result at `result`.
template <typename Use>
int Into(const void* result, const char* call, Use&& use) {
  return WithClient([&](Client& client) -> Status {
    if (result == nullptr) {
      return {ErrorCode::kInvalidArgument,
              std::string(call) + ": the address for the result is null"};
    }
    return use(client);
  });
}

}  // namespace

extern "C" {

int ferry_ring_create(int device, uint32_t slots, uint32_t completions, ferry_ring* ring) {
  return Into(ring, "ferry_ring_create", [&](Client& client) -> Status {
    *ring = FERRY_RING_NULL;
    auto made = client.matching().rings().Make(device, slots, completions);
    FERRY_RETURN_IF_ERROR(made.status());
    *ring = *made;
    return {};
  });
}

int ferry_ring_address(ferry_ring ring, void** address) {
  return Into(address, "ferry_ring_address", [&](Client& client) -> Status {
    *address = nullptr;
    auto found = client.matching().rings().AddressOf(ring);
    FERRY_RETURN_IF_ERROR(found.status());
    *address = *found;
    return {};
  });
}

int ferry_ring_place(ferry_ring ring, const void* pointer, size_t size_bytes,
                     ferry_device_place* place) {
  return Into(place, "ferry_ring_place", [&](Client& client) -> Status {
    FERRY_RETURN_IF_ERROR(client.matching().rings().AddressOf(ring).status());
    if (client.IsByStream(pointer)) {
      return {ErrorCode::kUnsupported,
              "ferry_ring_place: device memory that only streams reach is out of ferryd's reach"};
    }
    const ferry::shm::Location where = client.one_sided().Locate(pointer, size_bytes);
    if (where.region == 0) {
      return {ErrorCode::kInvalidBuffer, "ferry_ring_place: " + std::to_string(size_bytes) +
                                             " bytes that ferry_alloc did not return"};
    }
    *place = {where.region, 0, where.address};
    return {};
  });
}

int ferry_ring_prepare_start(ferry_ring ring, ferry_request request,
                             ferry_device_place* request_place) {
  return Into(request_place, "ferry_ring_prepare_start", [&](Client& client) -> Status {
    FERRY_RETURN_IF_ERROR(client.matching().rings().AddressOf(ring).status());
    auto where = client.matching().PrepareStart(request);
    FERRY_RETURN_IF_ERROR(where.status());
    *request_place = {where->region, 0, where->address};
    return {};
  });
}

int ferry_ring_get_state(ferry_ring ring, ferry_ring_state* state) {
  return Into(state, "ferry_ring_get_state", [&](Client& client) -> Status {
    auto found = client.matching().rings().StateOf(ring);
    FERRY_RETURN_IF_ERROR(found.status());
    *state = {static_cast<int>(found->error),
              found->requests,
              found->errors,
              found->errors == 0 ? 0 : found->first_ticket + 1,
              found->first_kind,
              static_cast<int>(found->first_error)};
    return {};
  });
}

int ferry_ring_destroy(ferry_ring* ring) {
  return Into(ring, "ferry_ring_destroy", [&](Client& client) -> Status {
    FERRY_RETURN_IF_ERROR(client.matching().rings().Destroy(*ring));
    *ring = FERRY_RING_NULL;
    return {};
  });
}

}  // extern "C"
