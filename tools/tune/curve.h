// How long something takes by its size: a copy, a read over the network.
//
// Pure: any thread.
#pragma once

#include <cstdint>
#include <vector>

namespace ferry::tools {

struct CurvePoint {
  uint64_t size_bytes = 0;
  double alone_us = 0;   // from its start to its end, with nothing before it
  double queued_us = 0;  // what it adds behind others of its size
};

// Measurements with straight lines between them; constant below the first, and beyond the last as
// steep as before it. A longer operation never takes less: where a measurement says so, something
// disturbed the shorter one. Nor does an operation take longer in a queue than alone.
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

  // The time that the shortest one takes alone.
  double start_up_us() const { return points_.empty() ? 0 : points_.front().alone_us; }
  // The rate of the longest ones in a queue: that of the last step between two sizes. 0 for a flat
  // curve, or one with fewer than two points.
  double mb_per_s() const;

 private:
  double At(double CurvePoint::*time, uint64_t size_bytes) const;

  std::vector<CurvePoint> points_;
};

}  // namespace ferry::tools
