// The emulated link of one process: a LinkModel on the real clock, shared by its streams.
//
// A stream's thread asks when its copy ends, moves the bytes, and sleeps until then. The model's
// times, not those of waking up, are what the next copy starts from (StreamWorker keeps them), so a
// late wake-up delays nothing but itself.
#pragma once

#include <cstdint>
#include <mutex>

#include "gpu_backends/host/link_model.h"

namespace ferry::gpu {

// Any thread.
class EmulatedLink {
 public:
  EmulatedLink(const HostLinkOptions& options, int device_count)
      : device_count_(device_count), model_(options, device_count) {}

  int device_count() const { return device_count_; }

  // As LinkModel::Occupy, on MonotonicNs. Does not block.
  LinkInterval Occupy(const LinkRoute& route, uint64_t size_bytes, uint64_t submit_ns);

  // A thread that will call SleepUntil calls this once first, so that it wakes up in time.
  static void PrepareThread();

  // Blocks until that MonotonicNs: sleeps, but for the last moment, which yields.
  static void SleepUntil(uint64_t deadline_ns);

 private:
  const int device_count_;
  std::mutex mutex_;
  LinkModel model_;
};

}  // namespace ferry::gpu
