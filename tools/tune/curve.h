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

// Measurements with straight lines between them, below the first as that, beyond the last as steep
// as before it. A longer one never takes less: where a measurement says so, something disturbed the
// shorter. Nor does one take longer in a queue than alone.
class Curve {
 public:
  Curve() = default;
  // In any order; sizes not twice.
  explicit Curve(std::vector<CurvePoint> points);

  const std::vector<CurvePoint>& points() const { return points_; }
  bool empty() const { return points_.empty(); }

  // 0 for an empty curve.
  double AloneUs(uint64_t size_bytes) const;
  double QueuedUs(uint64_t size_bytes) const;

  // What the shortest one takes alone.
  double start_up_us() const { return points_.empty() ? 0 : points_.front().alone_us; }
  // Of the longest ones in a queue: of the last step between two sizes. 0 for a flat curve, or one
  // with fewer than two points.
  double mb_per_s() const;

 private:
  double At(double CurvePoint::*time, uint64_t size_bytes) const;

  std::vector<CurvePoint> points_;
};

}  // namespace ferry::tools
