// One of Ferry's calls again and again, while each call of the driver's in turn fails on rank 0,
// and what all that leaves behind.
//
// Calling thread: one.
#pragma once

#include <functional>
#include <string>

#include "tests/vendor_memory/holdings.h"
#include "tests/vendor_memory/stand_in.h"

namespace ferry::vendor_memory {

constexpr size_t kShort = 300;
constexpr size_t kLong = 40'000;

struct Round {
  std::string faults;
  unsigned seed;
  size_t bytes;
};

struct CallUnderTest {
  const char* name;
  std::function<void(const Round& round)> run;  // on all ranks, which meet in it
  std::function<void()> meet;
  int most_calls;  // more than the driver gets from one round
  bool may_pass;   // although the driver fails: nothing but looks at known memory is asked of it
};

inline int failed = 0;  // calls of Ferry's, on this rank

// Returns what processes hold once what is kept for later has come and what was freed is gone.
inline Holdings Settle(const CallUnderTest& call) {
  for (unsigned round = 0; round < 40; ++round) {
    call.run({"", round, round % 2 == 0 ? kShort : kLong});
  }
  call.meet();
  Holdings found = FindHoldings();
  call.meet();
  return found;
}

inline void FailEachCallOfTheDriver(const CallUnderTest& call, bool fails_here) {
  constexpr int kSweeps = 3;
  constexpr size_t kFew = 5;  // of what caches keep; a leak grows with the sweeps
  Holdings before = Settle(call);
  unsigned seed = 0;
  for (int sweep = 0; sweep < kSweeps; ++sweep) {
    for (const size_t bytes : {kShort, kLong}) {
      for (int number = 1; number <= call.most_calls; ++number, ++seed) {
        step = std::string(call.name) + " of " + std::to_string(bytes) + " bytes, call " +
               std::to_string(number);
        call.run({"*:" + std::to_string(number) + ":999", seed + (sweep % 2), bytes});
      }
    }
  }
  bool is_more = false;
  for (const auto& [what, count] : Settle(call)) {
    // Mappings of the heap and of threads' stacks come and go.
    const bool counts = what.find(" maps") == std::string::npos;
    if (counts && (before.count(what) == 0 || count > before[what] + kFew)) {
      std::fprintf(stderr, "%s: %zu after %zu\n", what.c_str(), count, before[what]);
      is_more = true;
    }
  }
  VENDOR_CHECK(!is_more);
  VENDOR_CHECK(call.may_pass || !fails_here || !SetFaults("") || failed > kSweeps);
}

}  // namespace ferry::vendor_memory
