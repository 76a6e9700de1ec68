// The output of the fault tests' rank programs, which tests/faults/fault_fixture.h reads.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>

#include "ferry/ferry.h"

namespace ferry::ranks {

inline void Say(const char* what) {
  std::printf("rank %d: %s\n", ferry_rank(), what);
  std::fflush(stdout);
}

inline void Say(const char* what, long number) {
  std::printf("rank %d: %s %ld\n", ferry_rank(), what, number);
  std::fflush(stdout);
}

inline uint64_t NowNs() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

// Prints "rank R: error CODE at NS: text", NS being the monotonic clock, and ends with status 3.
inline void StopOnError(int code) {
  if (code != FERRY_SUCCESS) {
    std::printf("rank %d: error %d at %llu: %s\n", ferry_rank(), code,
                static_cast<unsigned long long>(NowNs()), ferry_last_error());
    std::fflush(stdout);
    std::_Exit(3);
  }
}

}  // namespace ferry::ranks
