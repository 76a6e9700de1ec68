// `ferryctl tune --collectives`: measures the algorithms of MPI's collectives by jobs of the layout
// that is to be tuned, and writes the rules that follow as a file for the option collective_table.
//
// Each trial (collective_choice.h) is a job of ferry-meter under ferryrun, in which the collectives
// take the algorithms that are measured; trials take turns, so that a moment's noise does not meet
// one algorithm alone. Main thread; blocks until all jobs have ended.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "coll/algorithms/selection.h"
#include "common/status.h"
#include "tools/tune/collective_choice.h"

namespace ferry::tools {

struct CollectivePlan {
  std::string job;                       // flags of ferryrun, by spaces; empty: this machine's CPUs
  std::vector<uint64_t> sizes;           // empty: 8 bytes to 1 MiB
  std::vector<std::string> collectives;  // empty: all that can be measured
  uint32_t rounds = 3;                   // the shortest times count
  std::string output;                    // file for the rules; empty: none
  bool force = false;
  std::vector<std::string> options;  // "--name=value", passed on to ferryrun
};

struct CollectiveResult {
  std::string job;
  std::vector<Comparison> comparisons;
  std::vector<collective::SelectionRule> rules;
};

// Measures and writes the file. kInvalidArgument: the plan makes no sense. kAlreadyExists,
// kPermissionDenied, kNotFound: the file, checked beforehand; or a program is missing. kSystem: a
// job failed, and has said why on standard error.
StatusOr<CollectiveResult> TuneCollectives(const CollectivePlan& plan);

// The file's text: the measurements as comments, then the rules.
std::string CollectiveFile(const CollectiveResult& result);
// The text for the terminal.
std::string CollectiveText(const CollectiveResult& result);
nlohmann::ordered_json CollectiveJson(const CollectiveResult& result);

}  // namespace ferry::tools
