// Runs MPI programs as the ranks of a private daemon, for tests that read what they print.
#pragma once

#include <string>
#include <vector>

namespace ferry::mpi {

// The lines that `program` prints as `ranks` ranks, sorted. Expects it to succeed.
std::vector<std::string> RunRanks(int ranks, const std::string& program);

// "rank 0: ok" and so on.
std::vector<std::string> AllOk(int ranks);

}  // namespace ferry::mpi
