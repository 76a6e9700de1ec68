#include "tools/tune/collective_choice.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "coll/algorithms/algorithm.h"

namespace ferry::tools {
namespace {

using collective::Collective;
using collective::NodeLayout;
using collective::Problem;

constexpr uint64_t kSegmentBytes = 128ULL << 10;
// The gain by which another algorithm replaces the built-in one: less is noise.
constexpr double kWorthIt = 0.95;

Problem ProblemOf(Collective collective, uint64_t size_bytes, std::vector<int> node_of) {
  Problem problem;
  problem.collective = collective;
  problem.size = static_cast<int>(node_of.size());
  problem.block_bytes = size_bytes;
  problem.element_bytes = sizeof(double);
  problem.node_of = std::move(node_of);
  return problem;
}

// Returns true if the algorithm sends a long vector otherwise when it is told to send pieces.
bool KnowsSegments(const collective::Algorithm& algorithm) {
  // Ranks and nodes that every algorithm fits.
  Problem problem = ProblemOf(algorithm.collective, 8 * kSegmentBytes, {0, 0, 1, 1});
  const size_t whole = collective::MakeSchedule(algorithm, problem).steps.size();
  problem.segment_bytes = kSegmentBytes;
  return collective::MakeSchedule(algorithm, problem).steps.size() != whole;
}

// Pieces that hold the whole vector count as no pieces.
Candidate Effective(Candidate candidate, uint64_t size_bytes) {
  if (candidate.segment_bytes >= size_bytes) {
    candidate.segment_bytes = 0;
  }
  return candidate;
}

struct Case {
  Collective collective;
  NodeLayout layout;
  uint32_t ranks;
  uint64_t size_bytes;

  auto operator<=>(const Case&) const = default;
};

struct Timed {
  Candidate candidate;
  double microseconds;
};

struct CaseTimes {
  std::vector<int> node_of;
  std::vector<Timed> timed;  // each candidate once
};

bool Fits(const Candidate& candidate, const Problem& problem) {
  return candidate.algorithm == collective::kBoardName
             ? IsForBoards(problem)
             : Fits(*FindAlgorithm(problem.collective, candidate.algorithm), problem);
}

std::map<Case, CaseTimes> Gather(std::span<const TrialResult> results) {
  std::map<Case, CaseTimes> cases;
  for (const TrialResult& result : results) {
    for (const auto& [collective, candidate] : result.trial.candidates) {
      for (const auto& [key, microseconds] : result.times.microseconds) {
        if (key.collective != collective) {
          continue;
        }
        const std::vector<int>& nodes = result.times.node_of_rank[key.communicator];
        const Problem problem = ProblemOf(collective, key.size_bytes, nodes);
        if (!Fits(candidate, problem) || Effective(candidate, key.size_bytes) != candidate) {
          continue;  // another one was at work, or the same without pieces
        }
        CaseTimes& times = cases[{collective, LayoutOf(problem),
                                  static_cast<uint32_t>(nodes.size()), key.size_bytes}];
        times.node_of = nodes;
        const auto known =
            std::find_if(times.timed.begin(), times.timed.end(),
                         [&](const Timed& timed) { return timed.candidate == candidate; });
        if (known == times.timed.end()) {
          times.timed.push_back({candidate, microseconds});
        } else {
          known->microseconds = std::min(known->microseconds, microseconds);
        }
      }
    }
  }
  return cases;
}

uint64_t Between(uint64_t size, uint64_t next) {
  return static_cast<uint64_t>(std::sqrt(static_cast<double>(size) * static_cast<double>(next)));
}

bool AreOfOneRun(const Comparison& a, const Comparison& b) {
  return a.collective == b.collective && a.layout == b.layout && a.ranks == b.ranks;
}

}  // namespace

std::vector<Candidate> CandidatesOf(Collective collective) {
  std::vector<Candidate> candidates;
  if (IsForBoards(ProblemOf(collective, 0, {0, 0}))) {
    candidates.push_back({collective::kBoardName, 0});
  }
  for (const collective::Algorithm& algorithm : collective::AlgorithmsOf(collective)) {
    candidates.push_back({algorithm.name, 0});
    if (KnowsSegments(algorithm)) {
      candidates.push_back({algorithm.name, kSegmentBytes});
    }
  }
  return candidates;
}

std::string Trial::Names() const {
  std::string names;
  for (const auto& [collective, candidate] : candidates) {
    names += (names.empty() ? "" : ",") + std::string(CollectiveName(collective)) + "=" +
             candidate.algorithm;
    if (candidate.segment_bytes != 0) {
      names += ":" + std::to_string(candidate.segment_bytes);
    }
  }
  return names;
}

std::vector<Trial> TrialsOf(std::span<const Collective> collectives) {
  std::vector<Trial> barriers;
  std::vector<Trial> others;
  for (const Collective collective : collectives) {
    std::vector<Trial>& trials = collective == Collective::kBarrier ? barriers : others;
    const std::vector<Candidate> candidates = CandidatesOf(collective);
    trials.resize(std::max(trials.size(), candidates.size()));
    for (size_t i = 0; i < candidates.size(); ++i) {
      trials[i].candidates.emplace_back(collective, candidates[i]);
    }
  }
  barriers.insert(barriers.end(), others.begin(), others.end());
  return barriers;
}

std::vector<Comparison> Compare(std::span<const TrialResult> results) {
  std::vector<Comparison> comparisons;
  for (const auto& [which, times] : Gather(results)) {
    const Problem problem = ProblemOf(which.collective, which.size_bytes, times.node_of);
    const collective::Choice choice = collective::SelectionTable().Choose(problem);
    const Candidate built_in_candidate =
        collective::SelectionTable().LeavesToBoards(problem)
            ? Candidate{collective::kBoardName, 0}
            : Effective({choice.algorithm->name, choice.segment_bytes}, which.size_bytes);
    Comparison comparison{.collective = which.collective,
                          .layout = which.layout,
                          .ranks = which.ranks,
                          .size_bytes = which.size_bytes,
                          .best = {},
                          .best_us = 0,
                          .built_in = built_in_candidate,
                          .built_in_us = 0};
    const Timed* best = nullptr;
    const Timed* built_in = nullptr;
    for (const Timed& timed : times.timed) {
      best = best == nullptr || timed.microseconds < best->microseconds ? &timed : best;
      built_in = timed.candidate == comparison.built_in ? &timed : built_in;
    }
    if (built_in != nullptr) {
      comparison.built_in_us = built_in->microseconds;
      best = best->microseconds < kWorthIt * built_in->microseconds ? best : built_in;
    }
    comparison.best = best->candidate;
    comparison.best_us = best->microseconds;
    comparisons.push_back(std::move(comparison));
  }
  return comparisons;
}

std::vector<collective::SelectionRule> RulesFrom(std::span<const Comparison> comparisons) {
  std::vector<collective::SelectionRule> rules;
  for (size_t i = 0; i < comparisons.size(); ++i) {
    const Comparison& one = comparisons[i];
    const Comparison* const next =
        i + 1 < comparisons.size() && AreOfOneRun(one, comparisons[i + 1]) ? &comparisons[i + 1]
                                                                           : nullptr;
    if (next != nullptr && next->best == one.best) {
      continue;  // the next one's rule covers it
    }
    rules.push_back(
        {.collective = one.collective,
         .max_bytes = next == nullptr ? UINT64_MAX : Between(one.size_bytes, next->size_bytes),
         .max_ranks = one.ranks,
         .layout = one.layout,
         .algorithm = one.best.algorithm,
         .segment_bytes = one.best.segment_bytes});
  }
  return rules;
}

}  // namespace ferry::tools
