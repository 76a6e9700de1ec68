// How a curve is measured: each size once alone and once behind others of its size, again and
// again; medians.
//
// One thread; it blocks.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "common/status.h"
#include "tools/tune/curve.h"

namespace ferry::tools {

// How many are queued together to learn what one adds.
inline constexpr uint32_t kQueued = 4;

// Starts `count` operations of `size_bytes`, one behind the other, and waits for their end.
using RunBatch = std::function<Status(uint64_t size_bytes, uint32_t count)>;

// `repetitions` of each size, after one that does not count. The first error ends it.
StatusOr<Curve> MeasureCurve(std::span<const uint64_t> sizes, uint32_t repetitions,
                             const RunBatch& run);

}  // namespace ferry::tools
