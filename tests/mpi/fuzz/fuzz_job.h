// Runs fuzz_calls as a job.
#pragma once

#include <string>
#include <vector>

#include "tests/mpi/e2e/mpi_job.h"

namespace ferry::mpi_tests {

// Expects it to find nothing wrong.
inline void ExpectFuzzed(const std::vector<std::string>& arguments,
                         const std::string& ranks = "1") {
  std::vector<std::string> program = {"tests/mpi/fuzz/fuzz_calls"};
  program.insert(program.end(), arguments.begin(), arguments.end());
  // The program may ask for more memory than there is. Processes that end within a call (there are
  // hundreds) need not look for leaks.
  const std::string leaks = arguments.front() == "outside" ? ":detect_leaks=0" : "";
  ExpectJob({"", {"-n", ranks}}, program, "all calls answered as they should",
            {"ASAN_OPTIONS=allocator_may_return_null=1" + leaks,
             "TSAN_OPTIONS=allocator_may_return_null=1 ignore_noninstrumented_modules=1"});
}

}  // namespace ferry::mpi_tests
