// The time of calls that are alike, of which only some are measured, since a reading of the clock
// takes a good part of their time: the others count with the mean of those that were measured.
//
// The first kMeasuredFirst calls are all measured, then one in about 64. The distances between them
// vary, so that a program's own rhythm does not choose those that are measured. A call that was
// interrupted counts with all of its time, but hardly moves the mean.
//
// Calling thread: one at a time.
#pragma once

#include <algorithm>
#include <cstdint>

namespace ferry::client {

// Distances between calls that are measured: 32 to 95, in no rhythm.
class SampleDistances {
 public:
  uint32_t Next() {  // xorshift (Marsaglia, "Xorshift RNGs", 2003)
    state_ ^= state_ << 13;
    state_ ^= state_ >> 17;
    state_ ^= state_ << 5;
    return kLeast + (state_ >> 8) % (2 * kLeast);
  }

 private:
  static constexpr uint32_t kLeast = 32;

  uint32_t state_ = 0x2545'f491;
};

class SampledTime {
 public:
  static constexpr uint32_t kMeasuredFirst = 32;

  // Returns true if the next call is to be measured.
  bool IsDue() const { return left_ == 0; }
  // A call has not been measured. Only while IsDue() is false.
  void Skip() { --left_; }
  // The last one that was skipped does not count here.
  void TakeBackSkip() { ++left_; }
  // A call has been measured, of those that IsDue() tells. Returns the time of the calls that were
  // skipped before it, since the one that was measured last.
  uint64_t Add(uint64_t time_ns, SampleDistances* distances) {
    measured_ = std::min(measured_ + 1, kMeasuredFirst);
    if (measured_ > kCold) {
      MoveMean(std::min(time_ns, kMostNs) * kUnit, std::min(measured_ - kCold, kMemory));
    }
    const uint64_t skipped_ns = gap_ * mean_ / kUnit;
    gap_ = measured_ < kMeasuredFirst ? 0 : distances->Next();
    left_ = gap_;
    return skipped_ns;
  }
  // Returns the time of those that no measured one has followed yet, which then have been counted.
  uint64_t TakeRest() {
    const uint64_t skipped_ns = (gap_ - left_) * mean_ / kUnit;
    gap_ = left_;
    return skipped_ns;
  }

 private:
  static constexpr uint64_t kUnit = 64;               // of a nanosecond, in `mean_`
  static constexpr uint64_t kMostNs = 1'000'000'000;  // of one call in the mean
  static constexpr uint32_t kCold = 4;                // calls that are not in the mean
  static constexpr uint32_t kMemory = 16;             // calls by which the mean changes
  static constexpr uint64_t kUnusual = 8;             // times the mean: interrupted

  void MoveMean(uint64_t time, uint32_t weight) {
    const uint64_t usual = weight == 1 ? time : std::min(time, mean_ * kUnusual + kUnit);
    mean_ = (mean_ * (weight - 1) + usual) / weight;
  }

  uint64_t mean_ = 0;
  uint32_t measured_ = 0;
  uint32_t gap_ = 0;   // how many calls to skip between the last one measured and the next one
  uint32_t left_ = 0;  // of these
};

}  // namespace ferry::client
