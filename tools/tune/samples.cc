#include "tools/tune/samples.h"

#include <algorithm>
#include <vector>

#include "common/clock.h"

namespace ferry::tools {
namespace {

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
