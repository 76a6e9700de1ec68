// The link between host and emulated devices, and their streams: how long things take.
#pragma once

#include <cstdint>

namespace ferry::gpu {

// Bandwidths are in MB/s of 10^6 bytes. A copy takes its start-up latency and then its bytes over
// the bandwidth.
struct HostLinkOptions {
  // Host to device and device to host, with pinned or registered host memory. Both 0: no link is
  // emulated, copies run at memory speed.
  uint64_t h2d_mb_per_s = 0;
  uint64_t d2h_mb_per_s = 0;
  // Host to device and device to host, with ordinary (pageable) host memory. 0: as with pinned
  // memory.
  uint64_t pageable_h2d_mb_per_s = 0;
  uint64_t pageable_d2h_mb_per_s = 0;
  // Copies inside one device. 0: only the start-up counts.
  uint64_t d2d_mb_per_s = 0;
  uint64_t latency_us = 0;
  // The start-up latency with pageable host memory. 0: latency_us.
  uint64_t pageable_latency_us = 0;
  // Engines of each device: 1, both directions take turns; 2, each has its own.
  uint64_t engines = 2;
  // Device memory faults when it is touched other than by a stream, as that of some GPUs does.
  bool guard = false;

  bool enabled() const { return h2d_mb_per_s != 0; }
};

// The time that a stream costs the CPU that uses it, besides its operations. 0: the time that the
// stream's thread takes.
struct HostStreamCosts {
  uint64_t launch_us = 0;       // from enqueuing an operation to its beginning, at least
  uint64_t synchronize_us = 0;  // from the last operation's end to the return of Synchronize
};

// An Intel Iris Xe Max (DG1) as measured by Chen et al., "Implementing and Optimizing a GPU-aware
// MPI Library for Intel GPUs", section V-B: 4 MiB take 1140 us to the device and 773 us from it,
// 1492 and 1249 us with pageable memory; 16 bytes take 25 to 28 us, 54 with pageable memory. Inside
// the device, half of its 68 GB/s, since a copy reads and writes.
inline HostLinkOptions PaperLink(uint64_t engines) {
  return {.h2d_mb_per_s = 3768,
          .d2h_mb_per_s = 5622,
          .pageable_h2d_mb_per_s = 2917,
          .pageable_d2h_mb_per_s = 3510,
          .d2d_mb_per_s = 34000,
          .latency_us = 27,
          .pageable_latency_us = 54,
          .engines = engines};
}

}  // namespace ferry::gpu
