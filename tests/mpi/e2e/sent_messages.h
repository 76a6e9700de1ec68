// The output of tests/mpi/ranks/algorithms: the number of messages that each rank sends.
#pragma once

#include <algorithm>
#include <string>

#include "coll/algorithms/algorithm.h"
#include "coll/problem.h"

namespace ferry::mpi_tests {

// Its line if the ranks of one node take the algorithm that `choose` returns for each one's problem
// of so many bytes.
template <typename Choose>
std::string SentLine(collective::Collective collective, int ranks, size_t bytes, Choose choose) {
  std::string line = "sent";
  for (int rank = 0; rank < ranks; ++rank) {
    collective::Problem problem;
    problem.collective = collective;
    problem.rank = rank;
    problem.size = ranks;
    problem.block_bytes = bytes;
    problem.element_bytes = sizeof(float);
    const auto steps = collective::MakeSchedule(*choose(problem), problem).steps;
    line += " " + std::to_string(std::count_if(steps.begin(), steps.end(), [](const auto& step) {
              return step.kind == collective::StepKind::kSend;
            }));
  }
  return line + "\n";
}

}  // namespace ferry::mpi_tests
