// Runs fuzz_calls as a job of one rank.
#pragma once

#include <string>
#include <vector>

namespace ferry::mpi_tests {

// Expects it to find nothing wrong.
void ExpectFuzzed(const std::vector<std::string>& arguments);

}  // namespace ferry::mpi_tests
