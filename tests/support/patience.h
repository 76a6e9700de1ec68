// How long a test waits for what must come before it calls that a hang: one time for all tests.
//
// A test that waits for an event goes on when that comes. How soon that is on a small or a loaded
// machine is not the test's business, so this is long, and only a test that fails waits so long.
// Bazel's limits (.bazelrc) are longer: a hang ends with the test's own words.
#pragma once

#include <chrono>
#include <cstdint>

namespace ferry::tests {

inline constexpr std::chrono::seconds kPatience(240);
inline constexpr uint64_t kPatienceNs = uint64_t{kPatience.count()} * 1'000'000'000;
inline constexpr int kPatienceMs = int{kPatience.count()} * 1'000;
inline constexpr unsigned kPatienceS = kPatience.count();

}  // namespace ferry::tests
