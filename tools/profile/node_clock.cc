#include "tools/profile/node_clock.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <queue>
#include <utility>

namespace ferry::tools {
namespace {

// Two answers tell how fast a clock runs only if they are far apart. The kernel never makes a clock
// run faster or slower by more (adjtimex's largest frequency, 500 ppm, at both ends).
constexpr int64_t kLeastSpanNs = 1'000'000'000;
constexpr double kMostDrift = 1e-3;

uint64_t RoundTrip(const ClockSample& sample) { return sample.answered_ns - sample.asked_ns; }

uint64_t ErrorOf(const ClockSample& sample) { return (RoundTrip(sample) + 1) / 2; }

int64_t Middle(const ClockSample& sample) {
  return static_cast<int64_t>(sample.asked_ns + RoundTrip(sample) / 2);
}

const ClockSample& Fastest(std::span<const ClockSample> samples) {
  return *std::min_element(
      samples.begin(), samples.end(),
      [](const ClockSample& a, const ClockSample& b) { return RoundTrip(a) < RoundTrip(b); });
}

}  // namespace

// ---- By questions -------------------------------------------------------------------------------

NodeClock NodeClock::Of(std::span<const ClockSample> samples) {
  NodeClock clock;
  if (samples.empty()) {
    clock.error_ns_ = UINT64_MAX;
    return clock;
  }
  std::vector<ClockSample> sorted(samples.begin(), samples.end());
  std::sort(sorted.begin(), sorted.end(),
            [](const ClockSample& a, const ClockSample& b) { return a.asked_ns < b.asked_ns; });
  const uint64_t half_ns =
      sorted.front().asked_ns + (sorted.back().asked_ns - sorted.front().asked_ns) / 2;
  const auto later = std::find_if(sorted.begin(), sorted.end(), [half_ns](const ClockSample& one) {
    return one.asked_ns > half_ns;
  });
  const ClockSample& first = Fastest({sorted.begin(), later});
  const ClockSample& second = later == sorted.end() ? first : Fastest({later, sorted.end()});
  const int64_t span_ns =
      static_cast<int64_t>(second.node_ns) - static_cast<int64_t>(first.node_ns);
  if (span_ns >= kLeastSpanNs) {
    const int64_t launcher_ns = Middle(second) - Middle(first);
    clock.drift_ =
        std::clamp(static_cast<double>(launcher_ns - span_ns) / static_cast<double>(span_ns),
                   -kMostDrift, kMostDrift);
    clock.from_ns_ = static_cast<int64_t>(first.node_ns);
    clock.to_ns_ = Middle(first);
    clock.error_ns_ = std::max(ErrorOf(first), ErrorOf(second));
    return clock;
  }
  const ClockSample& best = Fastest(sorted);
  clock.from_ns_ = static_cast<int64_t>(best.node_ns);
  clock.to_ns_ = Middle(best);
  clock.error_ns_ = ErrorOf(best);
  return clock;
}

int64_t NodeClock::ToLauncher(uint64_t node_ns) const {
  const int64_t since_ns = static_cast<int64_t>(node_ns - static_cast<uint64_t>(from_ns_));
  return to_ns_ + since_ns + std::llround(drift_ * static_cast<double>(since_ns)) + shift_ns_;
}

// ---- By messages --------------------------------------------------------------------------------

// Prim's algorithm: of all ways to compare the nodes with the launcher, directly or by way of
// others, those with the smallest errors.
ClockShifts ShiftsByMessages(std::span<const uint64_t> errors_ns,
                             std::span<const NodeDelay> delays) {
  const auto nodes = static_cast<uint32_t>(errors_ns.size());
  std::map<std::pair<uint32_t, uint32_t>, int64_t> least;
  for (const NodeDelay& delay : delays) {
    if (delay.from < nodes && delay.to < nodes && delay.from != delay.to) {
      least.insert({{delay.from, delay.to}, delay.least_ns});
    }
  }
  struct Edge {
    uint64_t error_ns;
    uint32_t node;
    int64_t shift_ns;
    bool operator>(const Edge& other) const {
      return std::pair(error_ns, node) > std::pair(other.error_ns, other.node);
    }
  };
  std::priority_queue<Edge, std::vector<Edge>, std::greater<>> edges;
  for (uint32_t node = 0; node < nodes; ++node) {
    edges.push({errors_ns[node], node, 0});
  }
  ClockShifts shifts{std::vector<int64_t>(nodes), std::vector<uint64_t>(nodes)};
  std::vector<bool> is_done(nodes);
  while (!edges.empty()) {
    const Edge edge = edges.top();
    edges.pop();
    if (is_done[edge.node]) {
      continue;
    }
    is_done[edge.node] = true;
    shifts.shift_ns[edge.node] = edge.shift_ns;
    shifts.error_ns[edge.node] = edge.error_ns;
    const uint32_t from = edge.node;
    for (auto there = least.lower_bound({from, 0});
         there != least.end() && there->first.first == from; ++there) {
      const uint32_t to = there->first.second;
      const auto back = least.find({to, from});
      if (is_done[to] || back == least.end()) {
        continue;
      }
      // The clock of `to` is ahead by half of what messages to it seem to be slower.
      const int64_t ahead_ns = (there->second - back->second) / 2;
      const uint64_t error_ns =
          static_cast<uint64_t>(std::llabs(there->second + back->second) + 1) / 2;
      edges.push({error_ns, to, edge.shift_ns - ahead_ns});
    }
  }
  return shifts;
}

}  // namespace ferry::tools
