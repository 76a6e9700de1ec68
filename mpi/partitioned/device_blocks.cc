#include "mpi/partitioned/device_blocks.h"

#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "mpi/base/connection.h"
#include "mpi/partitioned/memory_slabs.h"

namespace ferry::mpi {
namespace {

struct Devices {
  std::mutex mutex;
  std::map<int, std::unique_ptr<MemorySlabs>> slabs;
};
Devices& devices = *new Devices();

MemorySlabs& SlabsOf(int device) {
  std::lock_guard lock(devices.mutex);
  std::unique_ptr<MemorySlabs>& slabs = devices.slabs[device];
  if (slabs == nullptr) {
    slabs = std::make_unique<MemorySlabs>(front_end->options().host_link_guard != 0
                                              ? client::MemoryKind::kPinned
                                              : client::MemoryKind::kDevice,
                                          device);
  }
  return *slabs;
}

}  // namespace

Result<DeviceBlock> TakeDeviceBlock(uint64_t size_bytes, int device) {
  const StatusOr<std::byte*> taken = SlabsOf(device).Take(size_bytes);
  if (!taken.ok()) {
    return Failure{MPI_ERR_NO_MEM, "no memory of the device " + std::to_string(device) + " for " +
                                       std::to_string(size_bytes) +
                                       " bytes of a Prequest: " + taken.status().message()};
  }
  return DeviceBlock{*taken, device, front_end->IsByStream(*taken)};
}

void GiveDeviceBlock(DeviceBlock* block) {
  if (block->data != nullptr) {
    SlabsOf(block->device).Give(block->data);
  }
  *block = {};
}

}  // namespace ferry::mpi
