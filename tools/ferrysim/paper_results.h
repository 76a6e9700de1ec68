// The results of the runs for docs/simulation.md, and the plots (SVG) and tables (Markdown) that
// show it. Pure: any thread.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tools/ferrysim/scaling.h"

namespace ferry::sim {

using Curve = std::vector<ScalingPoint>;
using Curves = std::map<SendKind, Curve>;

// A time against ranks, bytes or entries.
struct Sample {
  double x = 0;
  double time_us = 0;
  double software_percent = 0;  // operations that the daemons ran
};
struct Series {
  std::string name;
  std::vector<Sample> samples;
};

struct PaperRuns {
  struct Problem {
    PublishedProblem published;
    double ps_per_cell = 0;
    Curves curves;
    Curve early_cpu;  // CPU-triggered, with half the eager limit
  };
  std::vector<Problem> problems;
  Curves beyond;                // the larger problem, eight ranks on a node, as far as asked for
  std::vector<Series> entries;  // of a NIC: time of a halo's iteration
  std::vector<Series> allreduce_ranks;  // of 8 bytes
  std::vector<Series> allreduce_bytes;  // of 1,024 ranks
  std::vector<Series> topologies;       // by ranks: iteration of a halo
};

// Returns the speed-up over one rank's measured time.
inline double SpeedupOf(const PaperRuns::Problem& problem, double iteration_us) {
  return problem.published.one_rank_us / iteration_us;
}

// As SVG.
std::string ScalingPlot(const PaperRuns& runs);  // the paper's figure 6
std::string EdgePlot(const PaperRuns& runs);     // its figure 8
std::string BeyondPlot(const PaperRuns& runs);   // to 100,000 ranks
std::string EntriesPlot(const PaperRuns& runs);  // NICs with few entries
std::string AllreducePlot(const PaperRuns& runs);
// As Markdown.
std::string PaperTables(const PaperRuns& runs);

}  // namespace ferry::sim
