#include "daemon/device_rings/ring_report.h"

#include <algorithm>
#include <cstddef>
#include <tuple>

namespace ferry::daemon {
namespace {

constexpr size_t kMostThings = 64;

bool IsOlder(const RingWait& wait, const RingWait& other) {
  return std::tie(wait.since_ns, wait.number) < std::tie(other.since_ns, other.number);
}

}  // namespace

void RingWaits::Add(const RingWait& wait) {
  const Key key{wait.step, wait.kind, wait.peer, wait.counter.region, wait.counter.address};
  const auto found = waits_.find(key);
  if (found == waits_.end()) {
    if (waits_.size() < kMostThings) {
      waits_.emplace(key, wait);
    }
    return;
  }
  const uint32_t count = found->second.count + wait.count;
  if (IsOlder(wait, found->second)) {
    found->second = wait;
  }
  found->second.count = count;
}

std::vector<RingWait> RingWaits::Sorted() const {
  std::vector<RingWait> sorted;
  for (const auto& [key, wait] : waits_) {
    sorted.push_back(wait);
  }
  std::sort(sorted.begin(), sorted.end(), IsOlder);
  return sorted;
}

}  // namespace ferry::daemon
