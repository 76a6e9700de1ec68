// The news that the daemons of a large job tell each other along the tree of its nodes, as one of
// them knows them. Plain data of the control thread; JobRelay changes it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "daemon/jobs/job_tree.h"

namespace ferry::daemon {

// A fact about a job. Facts stay true, so hearing one twice does no harm; what else belongs to it
// stands in the job's record.
struct JobFact {
  enum class Kind : uint8_t { kJoined, kEnded, kLost, kFailed, kAborted };
  Kind kind = Kind::kJoined;
  uint32_t index = 0;  // of the rank, or of the node that is lost
  uint32_t from = 0;   // the node that told it; this one's own number: found out here
  uint32_t count = 1;  // of ranks from `index` on of one node, of which the same is true
};

// A daemon with which this one exchanges news.
struct JobNeighbour {
  size_t told = 0;            // of the facts: it has confirmed so many
  bool has_answered = false;  // and so knows this daemon as its neighbour, too
  bool in_flight = false;     // a request to it
  bool is_over = false;       // the job has ended there before it has here
};

struct JobNews {
  JobTree tree;
  std::vector<JobFact> facts;  // each once, in the order in which they were learned
  size_t sealed = 0;           // so many of them have been told: their counts grow no more
  uint64_t learned = 0;        // grows with each rank or node that is added
  std::map<uint32_t, JobNeighbour> neighbours;  // by node
  bool has_told_failure = false;                // the fact is there
  bool has_told_abort = false;
};

}  // namespace ferry::daemon
