// The emulated link between host and devices: computes how long copies take, and waits for that
// long.
#pragma once

#include <array>
#include <cstdint>
#include <mutex>
#include <vector>

#include "gpu_backends/host/link_options.h"

namespace ferry::gpu {

// The ends of a copy. Device numbers lie below the model's count.
struct LinkRoute {
  static constexpr int kHost = -1;
  int from_device = kHost;
  int to_device = kHost;
  bool pageable = false;  // a host end is neither pinned nor registered
};

struct LinkInterval {
  uint64_t begin_ns = 0;
  uint64_t end_ns = 0;
  bool operator==(const LinkInterval&) const = default;
};

// Computes when copies over the emulated link begin and end. Pure: no clock and no threads, callers
// pass the time in. One thread at a time; times are in nanoseconds of any one clock.
//
// Every engine serves copies one at a time, in the order of the calls to Occupy. A copy between two
// devices occupies the engine that leaves the one and the engine that enters the other, at the
// slower of both bandwidths. Copies inside a device have an engine of their own.
class LinkModel {
 public:
  LinkModel(const HostLinkOptions& options, int device_count);

  // Gives the copy its engines from the moment all are free, at `submit_ns` at the earliest. A copy
  // from host to host needs none and takes no time.
  LinkInterval Occupy(const LinkRoute& route, uint64_t size_bytes, uint64_t submit_ns);

  // Returns how long such a copy occupies its engines.
  uint64_t DurationNs(const LinkRoute& route, uint64_t size_bytes) const;

 private:
  enum Direction { kIn, kOut, kInside };
  using Engines = std::array<uint64_t, 3>;  // when each direction's engine is free

  // With one engine both directions share kIn's.
  uint64_t& FreeNs(int device, Direction direction);
  uint64_t BandwidthMbPerS(const LinkRoute& route) const;

  const HostLinkOptions options_;
  std::vector<Engines> devices_;
};

// The emulated link of one process: a LinkModel on the real clock, shared by its streams.
//
// A stream's thread asks when its copy ends, moves the bytes, and sleeps until then. The next copy
// starts from the model's times, not from those of waking up (StreamWorker keeps them), so a late
// wake-up delays nothing but itself. Any thread.
class EmulatedLink {
 public:
  EmulatedLink(const HostLinkOptions& options, int device_count)
      : device_count_(device_count), model_(options, device_count) {}

  int device_count() const { return device_count_; }

  // As LinkModel::Occupy, on MonotonicNs. Does not block.
  LinkInterval Occupy(const LinkRoute& route, uint64_t size_bytes, uint64_t submit_ns);

  // Blocks until MonotonicNs is `deadline_ns`: sleeps, and yields for the last moment. The thread
  // must have called WakeInTime.
  static void SleepUntil(uint64_t deadline_ns);

 private:
  const int device_count_;
  std::mutex mutex_;
  LinkModel model_;
};

}  // namespace ferry::gpu
