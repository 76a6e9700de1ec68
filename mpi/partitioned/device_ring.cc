#include "mpi/partitioned/device_ring.h"

#include <cstddef>
#include <map>
#include <mutex>

#include "mpi/base/connection.h"
#include "shm/atomic.h"
#include "shm/layout/mpsc_ring_layout.h"

namespace ferry::mpi {
namespace {

using shm::MpscRingLayout;

// How many requests may be on their way to ferryd: two for each unit.
constexpr uint32_t kSlots = 1024;

static_assert(offsetof(MpscRingLayout, producer_words) ==
              offsetof(MpscRingLayout, capacity) + 3 * sizeof(uint64_t));

const MpscRingLayout& LayoutOf(const client::StreamQueues::DeviceRing& ring) {
  return *static_cast<const MpscRingLayout*>(ring.address);
}

struct Rings {
  std::mutex mutex;
  std::map<int, std::weak_ptr<DeviceRing>> of_devices;
};
Rings& rings = *new Rings();

}  // namespace

StatusOr<std::shared_ptr<DeviceRing>> DeviceRing::Find(int device) {
  std::lock_guard lock(rings.mutex);
  std::weak_ptr<DeviceRing>& known = rings.of_devices[device];
  if (std::shared_ptr<DeviceRing> ring = known.lock(); ring != nullptr && !ring->HasEnded()) {
    return ring;
  }
  // Its requests are answered in memory of their own.
  StatusOr<client::StreamQueues::DeviceRing> made = front_end->queues->MakeRing(device, kSlots, 0);
  FERRY_RETURN_IF_ERROR(made.status());
  std::shared_ptr<DeviceRing> ring(new DeviceRing(*made));
  known = ring;
  return ring;
}

// A daemon that does not answer is told of by others.
DeviceRing::~DeviceRing() {
  if (front_end != nullptr) {  // else libferry has freed it
    (void)front_end->queues->FreeRing(ring_.handle);
  }
}

const uint64_t* DeviceRing::words() const {
  return static_cast<const uint64_t*>(ring_.address) +
         offsetof(MpscRingLayout, capacity) / sizeof(uint64_t);
}

uint64_t DeviceRing::producers() const {
  const uint64_t own = words()[3];
  return own != 0 ? own : reinterpret_cast<uintptr_t>(ring_.address);
}

bool DeviceRing::HasEnded() const { return shm::LoadAcquire(LayoutOf(ring_).ended) != 0; }

}  // namespace ferry::mpi
