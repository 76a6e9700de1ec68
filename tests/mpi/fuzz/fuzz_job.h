// Runs fuzz_calls as a job.
#pragma once

#include <string>
#include <vector>

namespace ferry::mpi_tests {

// Expects it to find nothing wrong.
void ExpectFuzzed(const std::vector<std::string>& arguments, const std::string& ranks = "1");

}  // namespace ferry::mpi_tests
