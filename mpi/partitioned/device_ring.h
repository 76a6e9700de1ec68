// The rings by which kernels ask ferryd to move units of partitioned messages
// (docs/device_ring.md): one for each device, which its Prequests share while there are any.
//
// Calling thread: any. Find blocks on the daemon if it makes a ring.
#pragma once

#include <cstdint>
#include <memory>

#include "client/api/front_end.h"
#include "common/status.h"

namespace ferry::mpi {

class DeviceRing {
 public:
  // Returns the device's ring; makes one if there is none, or if it has ended. A ring that has
  // ended stays with the Prequests that have it. Errors as of StreamQueues::MakeRing.
  static StatusOr<std::shared_ptr<DeviceRing>> Find(int device);
  ~DeviceRing();
  DeviceRing(const DeviceRing&) = delete;
  DeviceRing& operator=(const DeviceRing&) = delete;

  void* address() const { return ring_.address; }
  // The ring's description, for ferry_device_ring_open_by: four words, the last of which is the
  // address of its producers' words, or 0.
  const uint64_t* words() const;
  uint64_t producers() const;

 private:
  explicit DeviceRing(client::StreamQueues::DeviceRing ring) : ring_(ring) {}
  bool HasEnded() const;

  const client::StreamQueues::DeviceRing ring_;
};

}  // namespace ferry::mpi
