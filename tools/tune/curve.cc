#include "tools/tune/curve.h"

#include <algorithm>
#include <utility>

#include "common/clock.h"

namespace ferry::tools {
namespace {

double SlopeUsPerByte(const CurvePoint& from, const CurvePoint& to, double CurvePoint::*time) {
  return (to.*time - from.*time) / static_cast<double>(to.size_bytes - from.size_bytes);
}

StatusOr<double> TimeUs(const RunBatch& run, uint64_t size_bytes, uint32_t count) {
  const uint64_t begin_ns = MonotonicNs();
  FERRY_RETURN_IF_ERROR(run(size_bytes, count));
  return static_cast<double>(MonotonicNs() - begin_ns) / 1000;
}

double Median(std::vector<double>* values) {
  const auto middle = values->begin() + static_cast<ptrdiff_t>(values->size() / 2);
  std::nth_element(values->begin(), middle, values->end());
  return *middle;
}

}  // namespace

Curve::Curve(std::vector<CurvePoint> points) : points_(std::move(points)) {
  std::sort(points_.begin(), points_.end(),
            [](const CurvePoint& a, const CurvePoint& b) { return a.size_bytes < b.size_bytes; });
  for (size_t i = points_.size(); i-- > 0;) {
    CurvePoint& point = points_[i];
    if (i + 1 < points_.size()) {
      point.alone_us = std::min(point.alone_us, points_[i + 1].alone_us);
      point.queued_us = std::min(point.queued_us, points_[i + 1].queued_us);
    }
    point.queued_us = std::clamp(point.queued_us, 0.0, point.alone_us);
  }
}

double Curve::AloneUs(uint64_t size_bytes) const { return At(&CurvePoint::alone_us, size_bytes); }

double Curve::QueuedUs(uint64_t size_bytes) const { return At(&CurvePoint::queued_us, size_bytes); }

double Curve::mb_per_s() const {
  if (points_.size() < 2) {
    return 0;
  }
  const double us_per_byte =
      SlopeUsPerByte(points_[points_.size() - 2], points_.back(), &CurvePoint::queued_us);
  return us_per_byte > 0 ? 1 / us_per_byte : 0;
}

double Curve::At(double CurvePoint::*time, uint64_t size_bytes) const {
  if (points_.empty()) {
    return 0;
  }
  if (points_.size() == 1 || size_bytes <= points_.front().size_bytes) {
    return points_.front().*time;
  }
  const auto above = std::lower_bound(
      points_.begin() + 1, points_.end() - 1, size_bytes,
      [](const CurvePoint& point, uint64_t size) { return point.size_bytes < size; });
  const CurvePoint& below = *(above - 1);
  return below.*time +
         SlopeUsPerByte(below, *above, time) *
             (static_cast<double>(size_bytes) - static_cast<double>(below.size_bytes));
}

StatusOr<Curve> MeasureCurve(std::span<const uint64_t> sizes, uint32_t repetitions,
                             const RunBatch& run) {
  std::vector<CurvePoint> points;
  for (const uint64_t size_bytes : sizes) {
    FERRY_RETURN_IF_ERROR(run(size_bytes, kQueued));
    std::vector<double> alone_us;
    std::vector<double> together_us;
    for (uint32_t i = 0; i < repetitions; ++i) {
      const StatusOr<double> alone = TimeUs(run, size_bytes, 1);
      FERRY_RETURN_IF_ERROR(alone.status());
      alone_us.push_back(*alone);
      const StatusOr<double> together = TimeUs(run, size_bytes, kQueued);
      FERRY_RETURN_IF_ERROR(together.status());
      together_us.push_back(*together);
    }
    const double one_us = Median(&alone_us);
    points.push_back({size_bytes, one_us, (Median(&together_us) - one_us) / (kQueued - 1)});
  }
  return Curve(std::move(points));
}

}  // namespace ferry::tools
