// The host backend: GPUs emulated by ordinary memory and threads, for machines and tests without
// one.
//
// Device memory is a sealed memfd with its pages present, mapped by its owner and by the processes
// that import it; the CPU can touch it. Streams are in-order threads that start with their first
// operation and sleep when idle (StreamWorker tells how value waits poll). Pinned memory is
// ordinary memory with its pages present; registering memory records the range and locks nothing,
// since no device needs it.
//
// Copies run at memory speed, or, where HostBackendOptions::link says so, as slowly as over the
// link of a real device. Such device memory is reported as out of the direct reach of CPUs and
// network: the CPU could touch it, but that would go around the link. With the link's `guard` such
// an access faults. Each process emulates its own link.
#pragma once

#include <cstdint>
#include <memory>

#include "common/status.h"
#include "gpu_backends/api/backend.h"
#include "gpu_backends/host/link_options.h"

namespace ferry::gpu {

struct HostBackendOptions {
  int device_count = 1;                              // 1 to 64
  uint64_t device_memory_bytes = uint64_t{1} << 30;  // of each device, for each process
  uint64_t wait_yield_ns = 200'000;  // how long a value wait yields before it sleeps between looks
  HostLinkOptions link;              // none by default
  HostStreamCosts costs;             // costs of the devices' streams; none by default
};

// kInvalidArgument for options outside their ranges. Any thread; does not block, takes no memory.
StatusOr<std::unique_ptr<GpuBackend>> CreateHostBackend(const HostBackendOptions& options);

// The address at which streams of a backend made by CreateHostBackend reach the memory at
// `pointer`: the same, except for device memory behind a guarded link. For functions that run in a
// stream's LaunchHost as the device's own work. The caller keeps the allocation alive. Any thread.
void* StreamAddress(const GpuBackend& host_backend, const void* pointer);

}  // namespace ferry::gpu
