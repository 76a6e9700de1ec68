// All that docs/simulation.md shows, by one call: runs, and their plots and tables
// (paper_results.h).
//
// Calling thread: one. Runs for minutes; files are written anew after each part.
#pragma once

#include <cstdint>
#include <string>

#include "common/status.h"
#include "tools/ferrysim/scaling.h"

namespace ferry::sim {

struct PaperPlan {
  std::string directory;        // which is there
  Machine machine;              // its ranks per node aside
  uint32_t most_ranks = 32768;  // for the curves beyond the paper; its own go to 8,192
  uint32_t warm_up = 4;         // as far as a CPU may be ahead
  uint32_t iterations = 4;
  uint64_t seed = 1;
};

// Errors: as RunHalo and RunAllreduce, or of writing the files.
Status MakePaper(const PaperPlan& plan, const Progress& progress);

}  // namespace ferry::sim
