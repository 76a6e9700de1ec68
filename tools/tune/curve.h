// The time of an operation by its size: of a copy, of a read over the network.
//
// Pure but for MeasureCurve: any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "common/status.h"

namespace ferry::tools {

struct CurvePoint {
  uint64_t size_bytes = 0;
  double alone_us = 0;   // from its start to its end, with nothing before it
  double queued_us = 0;  // how much it adds behind others of its size
};

// Measurements with straight lines between them; constant below the first, and beyond the last as
// steep as before it. A longer operation never takes less: where a measurement says so, a
// disturbance made the shorter one longer. Nor does an operation take longer in a queue than alone.
class Curve {
 public:
  Curve() = default;
  // Points in any order, each size once.
  explicit Curve(std::vector<CurvePoint> points);

  const std::vector<CurvePoint>& points() const { return points_; }
  bool empty() const { return points_.empty(); }

  // 0 for an empty curve.
  double AloneUs(uint64_t size_bytes) const;
  double QueuedUs(uint64_t size_bytes) const;

  // Returns the time that the shortest operation takes alone.
  double start_up_us() const { return points_.empty() ? 0 : points_.front().alone_us; }
  // Returns the rate of the longest operations in a queue: that of the last step between two sizes.
  // 0 for a flat curve, or one with fewer than two points.
  double mb_per_s() const;

 private:
  double At(double CurvePoint::*time, uint64_t size_bytes) const;

  std::vector<CurvePoint> points_;
};

// How many operations are queued together to learn how much one adds.
inline constexpr uint32_t kQueued = 4;

// Starts `count` operations of `size_bytes`, one behind the other, and waits for their end.
using RunBatch = std::function<Status(uint64_t size_bytes, uint32_t count)>;

// Measures each size once alone and once behind others of its size, again and again; takes medians.
// One thread; it blocks. `repetitions` of each size, after one that does not count. The first error
// ends it.
StatusOr<Curve> MeasureCurve(std::span<const uint64_t> sizes, uint32_t repetitions,
                             const RunBatch& run);

}  // namespace ferry::tools
