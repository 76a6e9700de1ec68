#include "gpu_backends/host/emulated_link.h"

#include <sched.h>

#include <algorithm>

#include "common/clock.h"
#include "common/sleep.h"

namespace ferry::gpu {
namespace {

constexpr uint64_t kNsPerUs = 1000;

uint64_t OrElse(uint64_t value, uint64_t fallback) { return value != 0 ? value : fallback; }

// About what it takes to wake up a thread.
constexpr uint64_t kYieldNs = 50'000;

}  // namespace

LinkModel::LinkModel(const HostLinkOptions& options, int device_count)
    : options_(options), devices_(device_count) {}

LinkInterval LinkModel::Occupy(const LinkRoute& route, uint64_t size_bytes, uint64_t submit_ns) {
  uint64_t none_ns = 0;
  uint64_t* out_ns = &none_ns;  // the engine that leaves the source
  uint64_t* in_ns = &none_ns;   // the engine that enters the destination
  if (route.from_device != LinkRoute::kHost) {
    out_ns = &FreeNs(route.from_device, route.from_device == route.to_device ? kInside : kOut);
  }
  if (route.to_device != LinkRoute::kHost && route.to_device != route.from_device) {
    in_ns = &FreeNs(route.to_device, kIn);
  }
  LinkInterval interval;
  interval.begin_ns = std::max({submit_ns, *out_ns, *in_ns});
  interval.end_ns = interval.begin_ns + DurationNs(route, size_bytes);
  *out_ns = *in_ns = interval.end_ns;
  return interval;
}

uint64_t LinkModel::DurationNs(const LinkRoute& route, uint64_t size_bytes) const {
  if (route.from_device == LinkRoute::kHost && route.to_device == LinkRoute::kHost) {
    return 0;
  }
  const uint64_t latency_us = route.pageable
                                  ? OrElse(options_.pageable_latency_us, options_.latency_us)
                                  : options_.latency_us;
  const uint64_t mb_per_s = BandwidthMbPerS(route);
  return latency_us * kNsPerUs + (mb_per_s == 0 ? 0 : size_bytes * 1000 / mb_per_s);
}

uint64_t& LinkModel::FreeNs(int device, Direction direction) {
  const bool shared = options_.engines == 1 && direction == kOut;
  return devices_[device][shared ? kIn : direction];
}

uint64_t LinkModel::BandwidthMbPerS(const LinkRoute& route) const {
  if (route.from_device == route.to_device) {
    return options_.d2d_mb_per_s;
  }
  if (route.from_device == LinkRoute::kHost) {
    return route.pageable ? OrElse(options_.pageable_h2d_mb_per_s, options_.h2d_mb_per_s)
                          : options_.h2d_mb_per_s;
  }
  if (route.to_device == LinkRoute::kHost) {
    return route.pageable ? OrElse(options_.pageable_d2h_mb_per_s, options_.d2h_mb_per_s)
                          : options_.d2h_mb_per_s;
  }
  return std::min(options_.h2d_mb_per_s, options_.d2h_mb_per_s);
}

LinkInterval EmulatedLink::Occupy(const LinkRoute& route, uint64_t size_bytes, uint64_t submit_ns) {
  std::lock_guard lock(mutex_);
  return model_.Occupy(route, size_bytes, submit_ns);
}

void EmulatedLink::SleepUntil(uint64_t deadline_ns) {
  const uint64_t now_ns = MonotonicNs();
  if (deadline_ns > now_ns + kYieldNs) {
    SleepUntilNs(deadline_ns - kYieldNs);
  }
  while (MonotonicNs() < deadline_ns) {
    sched_yield();
  }
}

}  // namespace ferry::gpu
