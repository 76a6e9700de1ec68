// Tells ferryd of this rank's regions, over the attach socket.
//
// Calling thread: one at a time (MemoryState::mutex). All but NewNumber block on the daemon.
#pragma once

#include <cstdint>

#include "client/bootstrap/attach_connection.h"
#include "client/memory/region_table.h"
#include "common/status.h"
#include "gpu_backends/api/backend.h"

namespace ferry::client {

class Announcer {
 public:
  explicit Announcer(AttachConnection* attach) : attach_(attach) {}

  uint32_t NewNumber() { return next_region_++; }
  // Tells the daemon of a whole memfd, or the part of one that is lent; returns the region's
  // number.
  StatusOr<uint32_t> AnnounceHost(int fd, uint64_t size_bytes, uint32_t flags);
  // Tells the daemon of device memory; sets the region's size, and how it is reached. If the CPU or
  // the network may not touch the memory, only streams use it.
  Status AnnounceDevice(gpu::GpuBackend& gpu, OwnRegion* region, const gpu::IpcHandle& handle,
                        const gpu::DirectAccess& direct);
  // Withdraws the region. kDaemonDied: the daemon has let go of it already.
  Status End(uint32_t region, uint64_t size_bytes) {
    return attach_->EndRegion(region, size_bytes);
  }

 private:
  AttachConnection* const attach_;
  uint32_t next_region_ = 1;
};

}  // namespace ferry::client
