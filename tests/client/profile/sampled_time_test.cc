// The time of calls of which only some are measured: how far it is from that of all of them.
#include "client/profile/sampled_time.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>

namespace ferry::client {
namespace {

struct Sums {
  double all_ns = 0;      // of all calls
  double counted_ns = 0;  // as they were counted
  int measured = 0;
};

// Makes `calls` calls, of which `time_of(i)` says how long each takes.
template <typename TimeOf>
Sums Make(int calls, TimeOf&& time_of) {
  SampledTime time;
  SampleDistances distances;
  Sums sums;
  for (int i = 0; i < calls; ++i) {
    const uint64_t took_ns = time_of(i);
    sums.all_ns += static_cast<double>(took_ns);
    if (time.IsDue()) {
      sums.counted_ns += static_cast<double>(took_ns + time.Add(took_ns, &distances));
      ++sums.measured;
    } else {
      time.Skip();
    }
  }
  sums.counted_ns += static_cast<double>(time.TakeRest());
  EXPECT_EQ(time.TakeRest(), 0U);
  return sums;
}

double ErrorOf(const Sums& sums) { return std::abs(sums.counted_ns / sums.all_ns - 1); }

TEST(SampledTimeTest, MeasuresTheFirstCallsAndThenOneInSixtyFour) {
  const Sums few = Make(SampledTime::kMeasuredFirst, [](int i) { return 40U + i; });
  EXPECT_EQ(few.measured, static_cast<int>(SampledTime::kMeasuredFirst));
  EXPECT_EQ(few.counted_ns, few.all_ns);
  const Sums many = Make(640'000, [](int) { return 50U; });
  EXPECT_NEAR(many.measured, 10'000, 500);
}

TEST(SampledTimeTest, CountsEachSkippedCallOnce) {
  for (const int calls : {33, 100, 1'000, 12'345}) {
    const Sums sums = Make(calls, [](int) { return 50U; });
    EXPECT_EQ(sums.counted_ns, sums.all_ns) << calls;
  }
}

TEST(SampledTimeTest, LeavesOutWhatTheFirstCallsTakeLonger) {
  const Sums sums = Make(10'000, [](int i) { return i < 4 ? 20'000U : 50U; });
  EXPECT_EQ(sums.counted_ns, sums.all_ns);
}

// One call in `period` takes five times as long, from any of them on. Of calls at a fixed distance
// all, or none, would be such.
TEST(SampledTimeTest, FollowsNoRhythm) {
  for (const int period : {2, 3, 16, 32, 64, 65, 128}) {
    for (const int phase : {0, 1, period / 2}) {
      const Sums sums = Make(500'000, [&](int i) { return i % period == phase ? 200U : 40U; });
      EXPECT_LT(ErrorOf(sums), 0.05) << period << " from " << phase;
    }
  }
}

TEST(SampledTimeTest, FollowsCallsThatBecomeSlower) {
  const Sums sums = Make(200'000, [](int i) { return 50U + static_cast<uint32_t>(i) / 400; });
  EXPECT_LT(ErrorOf(sums), 0.02);
}

// An interruption of 4 ms in one call does not count for the calls around it.
TEST(SampledTimeTest, DoesNotMultiplyInterruptions) {
  SampledTime time;
  SampleDistances distances;
  uint64_t counted_ns = 0;
  uint64_t interrupted = 0;
  for (int i = 0; i < 100'000; ++i) {
    if (!time.IsDue()) {
      time.Skip();
      continue;
    }
    const bool is_interrupted = i > 10'000 && interrupted < 3;
    interrupted += is_interrupted ? 1 : 0;
    const uint64_t took_ns = is_interrupted ? 4'000'000 : 50;
    counted_ns += took_ns + time.Add(took_ns, &distances);
  }
  counted_ns += time.TakeRest();
  EXPECT_EQ(interrupted, 3U);
  EXPECT_GT(counted_ns, 3 * 4'000'000U + 100'000 * 50 - 200);
  EXPECT_LT(counted_ns, 3 * 4'000'000U + 100'000 * 50 * 11 / 10);
}

}  // namespace
}  // namespace ferry::client
