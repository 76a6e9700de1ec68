// The sentences of a WaitGraph: the verdict on a rank that waits.
#include <algorithm>

#include "common/counted.h"
#include "daemon/admin/why_edges.h"
#include "daemon/admin/why_graph.h"
#include "daemon/admin/why_kernels.h"
#include "daemon/admin/why_steps.h"

namespace ferry::daemon {
namespace {

constexpr size_t kMostCallsTold = 4;   // in one sentence
constexpr size_t kMostRanksTold = 16;  // likewise

constexpr char kWaits[] = "waits";

// `begin` and "0, 1, 2". Nothing without ranks.
std::string RanksText(const char* begin, const std::vector<uint32_t>& ranks) {
  std::string text;
  for (size_t i = 0; i < std::min(ranks.size(), kMostRanksTold); ++i) {
    text += (i == 0 ? begin : ", ") + std::to_string(ranks[i]);
  }
  return ranks.size() > kMostRanksTold
             ? text + " and " + std::to_string(ranks.size() - kMostRanksTold) + " more"
             : text;
}

// "; and all wait that could send to one that takes messages of any rank: 0, 1, 2".
std::string KnotText(const std::vector<uint32_t>& ranks) {
  return RanksText("; all that could end the wait for any of several ranks wait, too: ", ranks);
}

}  // namespace

// "; rank 0 is in MPI_Barrier on MPI_COMM_WORLD, number 7", of the first ranks of a chain, and of
// those whose kernels wait: what one is in, where the sentence does not say it.
std::string WaitGraph::CallsText(const Chain& chain, const std::string& job_id) {
  std::string text;
  size_t count = 0;
  for (size_t i = 0; i + 1 < chain.ranks.size() && count < kMostCallsTold; ++i) {
    const control::RankWait& look = Look(job_id, chain.ranks[i]).look;
    const bool is_told = chain.circle || i == 0 || NeedsOf(look) != KernelNeeds::kNothing;
    if (is_told && look.state() == kWaits && !look.calls().empty()) {
      ++count;
      text += (text.empty() ? "; " : ", ") + RankName(look.rank()) + " " + look.detail();
    }
  }
  return text;
}

// The sentence of a long chain names its first and its last ranks only.
std::string WaitGraph::ChainText(const Chain& chain, const std::string& job_id) {
  std::vector<uint32_t> told = {chain.ranks.front()};
  const control::RankWait* before = &Look(job_id, chain.ranks.front()).look;
  for (size_t i = 1; i < chain.ranks.size(); ++i) {
    const control::RankWait& look = Look(job_id, chain.ranks[i]).look;
    // Ranks between that wait in the same call say nothing.
    if (i + 1 == chain.ranks.size() || chain.circle || !HasCome(*before, look)) {
      told.push_back(chain.ranks[i]);
      before = &look;
    }
  }
  constexpr size_t kEach = kMostRanksTold / 2;
  const size_t unnamed = told.size() > kMostRanksTold ? told.size() - kMostRanksTold : 0;
  std::string text = RankName(told.front());
  for (size_t i = 1; i < told.size(); ++i) {
    if (unnamed != 0 && i == kEach) {
      i += unnamed;
      text += ", and so on through " +
              Counted(static_cast<int64_t>(unnamed), "further rank", "further ranks") + " to " +
              RankName(told[i]);
    } else {
      text += (i == 1 ? " waits for " : ", which waits for ") + RankName(told[i]);
    }
  }
  return text;
}

// Says which ranks wait for each other by their kernels, if the first of the chain that waits by
// one does. None of them is called stuck for ever: see why_kernels.h.
std::string WaitGraph::KernelsText(const Chain& chain, const std::string& job_id) {
  for (const uint32_t rank : chain.ranks) {
    if (IsKept(Look(job_id, rank).look, Whose::kKernels)) {
      const std::vector<uint32_t> ranks = FindKnot(job_id, rank, Whose::kKernels);
      return ranks.size() < 2 ? ""
                              : "; in a circle of kernels: " + RanksText("ranks ", ranks) +
                                    " wait for each other, and only what other kernels or threads "
                                    "of theirs do, or have done already, ends that";
    }
  }
  return "";
}

bool WaitGraph::IsOfCalls(const Chain& chain, const std::string& job_id) {
  for (size_t i = 0; i + 1 < chain.ranks.size(); ++i) {
    const control::WaitEdge* const edge =
        EdgeTo(Look(job_id, chain.ranks[i]).look, chain.ranks[i + 1]);
    if (edge != nullptr && edge->meets()) {
      return true;
    }
  }
  return false;
}

std::string WaitGraph::Verdict(const Chain& chain, const control::RankWait& wait) {
  const std::string& job_id = wait.job_id();
  if (chain.circle) {
    return "deadlock: " + ChainText(chain, job_id) + ": each of them waits for " +
           (IsOfCalls(chain, job_id) ? "the next one"
                                     : "what the next one has not sent or asked for") +
           KnotText(chain.knot) + CallsText(chain, job_id);
  }
  if (chain.ranks.size() > 1) {
    return ChainText(chain, job_id) + ", which " + Look(job_id, chain.ranks.back()).look.detail() +
           CallsText(chain, job_id) + KernelsText(chain, job_id);
  }
  std::string text = RankName(wait.rank()) + " " + wait.detail();
  if (!wait.calls().empty()) {
    const std::string& ends_by = wait.calls(0).ends_by();
    return text + (ends_by.empty() ? "" : ": ") + ends_by + KernelsText(chain, job_id);
  }
  if (wait.state() == kWaits) {
    text += wait.unfinished() == 0
                ? ", without a request: in a probe, for memory that others change, or just done"
                : ": for any rank, or for a copy that is under way";
  } else if (wait.unfinished() != 0) {
    text += "; " + std::to_string(wait.unfinished()) + " of its requests are unfinished";
  }
  return text;
}

}  // namespace ferry::daemon
