// Numbers that look random but depend only on the arguments. So a run with the same seed is the
// same run, in whatever order events come.
//
// Pure functions: any thread.
#pragma once

#include <cstdint>

namespace ferry::sim {

// SplitMix64's output function (Steele, Lea and Flood, OOPSLA 2014).
constexpr uint64_t Mixed(uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
  x = (x ^ x >> 27) * 0x94d049bb133111eb;
  return x ^ x >> 31;
}

// A number from 0 to below 1, for a draw named by three numbers.
constexpr double Draw(uint64_t seed, uint64_t a, uint64_t b) {
  return static_cast<double>(Mixed(Mixed(Mixed(seed) ^ a) ^ b) >> 11) * 0x1p-53;
}

}  // namespace ferry::sim
