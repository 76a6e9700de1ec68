// Chooses the algorithms of collectives to measure, and derives rules from the times
// (coll/algorithms/selection.h).
//
// Pure functions; any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "coll/algorithms/selection.h"
#include "coll/problem.h"
#include "tools/tune/meter_text.h"

namespace ferry::tools {

// An algorithm, and the size of the pieces in which it sends long vectors (0: whole).
struct Candidate {
  std::string algorithm;
  uint64_t segment_bytes = 0;

  bool operator==(const Candidate&) const = default;
};

// The candidates of a collective, with pieces only where they make a difference.
std::vector<Candidate> CandidatesOf(collective::Collective collective);

// The candidates that one job measures: at most one for each collective.
struct Trial {
  std::vector<std::pair<collective::Collective, Candidate>> candidates;

  // As option collective_algorithms takes them: "bcast=chain:131072,scan=linear".
  std::string Names() const;
};
// The fewest trials in which each candidate of these collectives has its turn. Barriers have trials
// of their own: a barrier follows each call of the others, and must be the same for all their
// candidates.
std::vector<Trial> TrialsOf(std::span<const collective::Collective> collectives);

// A trial, and the times that it took.
struct TrialResult {
  Trial trial;
  MeterResult times;
};

// The time for one size, on one communicator, with the barrier behind it.
struct Comparison {
  collective::Collective collective = collective::Collective::kBarrier;
  collective::NodeLayout layout = collective::NodeLayout::kAny;
  uint32_t ranks = 0;
  uint64_t size_bytes = 0;
  Candidate best;
  double best_us = 0;
  Candidate built_in;  // the choice without a table
  double built_in_us = 0;
};

// In the order of rules: by collective, layout, ranks and bytes. The shortest time of repeated
// trials counts. The built-in choice counts as the best unless another one is 5 % faster.
std::vector<Comparison> Compare(std::span<const TrialResult> results);

// Makes rules by which each case takes its best. Limits lie halfway, in powers, between a size and
// the next one; the last rule of a number of ranks has none.
std::vector<collective::SelectionRule> RulesFrom(std::span<const Comparison> comparisons);

}  // namespace ferry::tools
