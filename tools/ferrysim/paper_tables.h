// The tables of MakePaper, as Markdown. Pure: any thread.
#pragma once

#include <string>

#include "tools/ferrysim/paper_runs.h"

namespace ferry::sim {

std::string PaperTables(const PaperRuns& runs);

}  // namespace ferry::sim
