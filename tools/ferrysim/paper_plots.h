// The plots of MakePaper, as SVG. Pure: any thread.
#pragma once

#include <string>

#include "tools/ferrysim/paper_runs.h"

namespace ferry::sim {

std::string ScalingPlot(const PaperRuns& runs);  // the paper's figure 6
std::string EdgePlot(const PaperRuns& runs);     // its figure 8
std::string BeyondPlot(const PaperRuns& runs);   // to 100,000 ranks
std::string EntriesPlot(const PaperRuns& runs);  // NICs with few entries
std::string AllreducePlot(const PaperRuns& runs);

}  // namespace ferry::sim
