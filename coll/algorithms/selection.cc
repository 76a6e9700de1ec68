#include "coll/algorithms/selection.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "coll/algorithms/party.h"

namespace ferry::collective {
namespace {

constexpr uint64_t kKib = 1024;
constexpr uint64_t kAnySize = UINT64_MAX;
constexpr uint32_t kAnyRanks = UINT32_MAX;

// The size, if all ranks know it; nothing if each only knows its own blocks.
std::optional<uint64_t> KnownBytes(const Problem& problem) {
  if (!problem.has_blocks) {
    return problem.block_bytes;
  }
  if (problem.collective != Collective::kAllgather &&
      problem.collective != Collective::kReduceScatter) {
    return std::nullopt;
  }
  return BytesOf(problem.receive_blocks) / static_cast<uint64_t>(problem.size);
}

class Matcher {
 public:
  explicit Matcher(const Problem& problem)
      : problem_(problem), bytes_(KnownBytes(problem)), layout_(LayoutOf(problem)) {}

  // The choice of the first rule that matches, or none. `board`: set if that one names the board
  // instead.
  Choice Find(const std::vector<SelectionRule>& rules, bool* board = nullptr) const {
    for (const SelectionRule& rule : rules) {
      if (rule.collective == problem_.collective && Matches(rule)) {
        if (board != nullptr && rule.algorithm == kBoardName) {
          *board = true;
          return {};
        }
        const Algorithm* algorithm = FindAlgorithm(rule.collective, rule.algorithm);
        if (algorithm != nullptr && Fits(*algorithm, problem_)) {
          return {algorithm, rule.segment_bytes};
        }
      }
    }
    return {};
  }

 private:
  bool Matches(const SelectionRule& rule) const {
    return (bytes_.has_value() ? *bytes_ <= rule.max_bytes : rule.max_bytes == kAnySize) &&
           static_cast<uint32_t>(problem_.size) <= rule.max_ranks &&
           (rule.layout == NodeLayout::kAny || rule.layout == layout_);
  }

  const Problem& problem_;
  const std::optional<uint64_t> bytes_;
  const NodeLayout layout_;
};

std::vector<SelectionRule> MakeBuiltInRules() {
  using enum Collective;
  constexpr NodeLayout kAny = NodeLayout::kAny;
  constexpr NodeLayout kOneNode = NodeLayout::kOneNode;
  constexpr NodeLayout kSpread = NodeLayout::kSpread;
  constexpr NodeLayout kMixed = NodeLayout::kMixed;
  return {
      {kBarrier, kAnySize, 2, kOneNode, "dissemination", 0},
      {kBarrier, kAnySize, 16, kOneNode, "linear", 0},
      {kBarrier, kAnySize, kAnyRanks, kMixed, "hierarchical", 0},
      {kBarrier, kAnySize, kAnyRanks, kAny, "dissemination", 0},

      // Inside a node each rank copies from the root by itself.
      {kBcast, 8 * kKib, kAnyRanks, kOneNode, "binomial", 0},
      {kBcast, kAnySize, 16, kOneNode, "linear", 0},
      {kBcast, 512 * kKib, kAnyRanks, kMixed, "hierarchical", 0},
      {kBcast, kAnySize, kAnyRanks, kMixed, "hierarchical", 512 * kKib},
      {kBcast, kAnySize, 2, kAny, "binomial", 0},
      {kBcast, 64 * kKib, kAnyRanks, kAny, "binomial", 0},
      {kBcast, kAnySize, 4, kAny, "chain", 128 * kKib},
      {kBcast, kAnySize, kAnyRanks, kAny, "scatter_ring", 0},

      {kGather, 2 * kKib, kAnyRanks, kSpread, "binomial", 0},
      {kGather, 2 * kKib, kAnyRanks, kMixed, "binomial", 0},
      {kScatter, 2 * kKib, kAnyRanks, kSpread, "binomial", 0},
      {kScatter, 2 * kKib, kAnyRanks, kMixed, "binomial", 0},

      {kAllgather, 256 * kKib, 4, kMixed, "hierarchical", 0},
      {kAllgather, kAnySize, 4, kAny, "linear", 0},
      {kAllgather, 8 * kKib, kAnyRanks, kMixed, "hierarchical", 0},
      {kAllgather, 8 * kKib, kAnyRanks, kAny, "recursive_doubling", 0},
      {kAllgather, 2 * kKib, kAnyRanks, kAny, "bruck", 0},
      {kAllgather, kAnySize, 32, kOneNode, "linear", 0},
      {kAllgather, kAnySize, kAnyRanks, kAny, "neighbor_exchange", 0},
      {kAllgather, kAnySize, kAnyRanks, kAny, "ring", 0},

      {kAlltoall, kAnySize, 4, kAny, "linear", 0},
      {kAlltoall, 256, kAnyRanks, kAny, "bruck", 0},
      {kAlltoall, 32 * kKib, kAnyRanks, kAny, "linear", 0},
      {kAlltoall, kAnySize, kAnyRanks, kAny, "pairwise", 0},

      {kReduce, 1024 * kKib, 16, kMixed, "hierarchical", 0},
      {kReduce, kAnySize, 16, kMixed, "hierarchical", 128 * kKib},
      {kReduce, 16 * kKib, kAnyRanks, kMixed, "hierarchical", 0},
      {kReduce, kAnySize, 2, kSpread, "binomial", 0},
      {kReduce, 16 * kKib, kAnyRanks, kAny, "binomial", 0},
      {kReduce, kAnySize, 16, kOneNode, "direct", 128 * kKib},
      {kReduce, kAnySize, kAnyRanks, kAny, "rabenseifner", 0},
      {kReduce, kAnySize, kAnyRanks, kAny, "binomial", 128 * kKib},

      {kAllreduce, 8 * kKib, kAnyRanks, kOneNode, "recursive_doubling", 0},
      {kAllreduce, kAnySize, 16, kOneNode, "direct", 128 * kKib},
      {kAllreduce, 1024 * kKib, 16, kMixed, "hierarchical", 0},
      {kAllreduce, 16 * kKib, kAnyRanks, kMixed, "hierarchical", 0},
      {kAllreduce, kAnySize, kAnyRanks, kMixed, "hierarchical_parts", 128 * kKib},
      // Parts pay where there is more than one partner: two ranks just exchange their vectors.
      {kAllreduce, 512 * kKib, 2, kSpread, "recursive_doubling", 0},
      {kAllreduce, 2048 * kKib, 2, kSpread, "rabenseifner", 0},
      {kAllreduce, kAnySize, 2, kSpread, "ring", 0},
      {kAllreduce, 16 * kKib, kAnyRanks, kAny, "recursive_doubling", 0},
      {kAllreduce, 1024 * kKib, kAnyRanks, kAny, "rabenseifner", 0},
      {kAllreduce, kAnySize, kAnyRanks, kAny, "ring", 128 * kKib},
      {kAllreduce, kAnySize, kAnyRanks, kAny, "reduce_bcast", 128 * kKib},

      {kReduceScatter, kAnySize, 16, kOneNode, "direct", 128 * kKib},
      {kReduceScatter, 64 * kKib, kAnyRanks, kAny, "recursive_halving", 0},
      {kReduceScatter, kAnySize, kAnyRanks, kAny, "direct", 128 * kKib},

      {kScan, 64 * kKib, kAnyRanks, kAny, "recursive_doubling", 0},
      {kScan, kAnySize, kAnyRanks, kAny, "linear", 128 * kKib},
      {kExscan, 64 * kKib, kAnyRanks, kAny, "recursive_doubling", 0},
      {kExscan, kAnySize, kAnyRanks, kAny, "linear", 128 * kKib},
  };
}

// A step of a device costs a launch and a wait, and its copies need no help of other ranks: so few
// steps of whole vectors are best, until it pays to move less.
const std::vector<SelectionRule>& RulesOfDevices() {
  using enum Collective;
  constexpr NodeLayout kOneNode = NodeLayout::kOneNode;
  static const auto& rules = *new std::vector<SelectionRule>{
      {kReduce, 8192 * kKib, kAnyRanks, kOneNode, "binomial", 0},
      {kReduce, kAnySize, kAnyRanks, kOneNode, "rabenseifner", 0},
      {kReduce, kAnySize, kAnyRanks, kOneNode, "binomial", 0},
      {kAllreduce, kAnySize, 2, kOneNode, "recursive_doubling", 0},
      {kAllreduce, 2048 * kKib, kAnyRanks, kOneNode, "reduce_bcast", 0},
      {kAllreduce, kAnySize, kAnyRanks, kOneNode, "rabenseifner", 0},
      {kAllreduce, kAnySize, kAnyRanks, kOneNode, "reduce_bcast", 0},
      {kReduceScatter, kAnySize, kAnyRanks, kOneNode, "recursive_halving", 0},
  };
  return rules;
}

}  // namespace

const char* NodeLayoutName(NodeLayout layout) {
  switch (layout) {
    case NodeLayout::kAny:
      return "any";
    case NodeLayout::kOneNode:
      return "one_node";
    case NodeLayout::kSpread:
      return "spread";
    case NodeLayout::kMixed:
      break;
  }
  return "mixed";
}

NodeLayout LayoutOf(const Problem& problem) {
  const size_t nodes = problem.node_of.CountDistinct();
  if (nodes <= 1) {
    return NodeLayout::kOneNode;
  }
  return nodes == problem.node_of.size() ? NodeLayout::kSpread : NodeLayout::kMixed;
}

const std::vector<SelectionRule>& BuiltInRules() {
  static const auto& rules = *new std::vector<SelectionRule>(MakeBuiltInRules());
  return rules;
}

namespace {

// Leaders reduce what their nodes have reduced, and move what lies together.
bool IsForTwoLevels(const Problem& problem) {
  switch (problem.collective) {
    case Collective::kBarrier:
    case Collective::kBcast:
      return true;
    case Collective::kReduce:
    case Collective::kAllreduce:
      return problem.commutative || AreNodesInOrder(problem);
    case Collective::kAllgather:
      return AreNodesInOrder(problem);
    default:
      return false;
  }
}

}  // namespace

bool IsForBoards(const Problem& problem) {
  if (IsAmongNeighbours(problem.collective) || problem.has_blocks || problem.is_inter ||
      problem.size == 1) {
    return false;
  }
  const NodeLayout layout = LayoutOf(problem);
  return layout == NodeLayout::kOneNode ||
         (layout == NodeLayout::kMixed && IsForTwoLevels(problem));
}

bool SelectionTable::NamesBoard(const Problem& problem) const {
  bool board = false;
  return Matcher(problem).Find(rules_, &board).algorithm == nullptr;
}

bool SelectionTable::LeavesToBoards(const Problem& problem) const {
  if (!IsForBoards(problem) || LayoutOf(problem) == NodeLayout::kOneNode) {
    return IsForBoards(problem) && LeavesToBoard(problem);
  }
  bool board = false;
  (void)Matcher(problem).Find(rules_, &board);
  return board;
}

bool SelectionTable::NamesBoardsOfNodes() const {
  return std::any_of(rules_.begin(), rules_.end(), [](const SelectionRule& rule) {
    return rule.algorithm == kBoardName &&
           (rule.layout == NodeLayout::kAny || rule.layout == NodeLayout::kMixed);
  });
}

Choice SelectionTable::Choose(const Problem& problem) const {
  if (const Algorithm* const inter = InterAlgorithm(problem.collective);
      problem.is_inter && inter != nullptr) {
    return {.algorithm = inter};
  }
  const Matcher matcher(problem);
  Choice choice = matcher.Find(rules_);
  if (choice.algorithm == nullptr && problem.of_devices) {
    choice = matcher.Find(RulesOfDevices());
  }
  if (choice.algorithm == nullptr) {
    choice = matcher.Find(BuiltInRules());
  }
  if (choice.algorithm == nullptr) {
    choice.algorithm = &AlgorithmsOf(problem.collective).front();
  }
  return choice;
}

Schedule MakeSchedule(const SelectionTable& table, Problem problem) {
  const bool is_part = problem.among != Among::kAll;
  const Party party = is_part ? PartyOf(problem) : Party();  // all ranks would be a long list
  if (is_part) {
    problem.rank = party.self;
    problem.size = party.size();
    problem.root = HasRoot(problem.collective) ? party.IndexOf(problem.root) : 0;
    problem.node_of = problem.among == Among::kLeaders ? NumberList::Line(0, 1, party.ranks.size())
                                                       : NumberList();
  }
  const Choice choice = table.Choose(problem);
  problem.segment_bytes = choice.segment_bytes;
  Schedule schedule = MakeSchedule(*choice.algorithm, problem);
  if (is_part) {
    for (Step& step : schedule.steps) {
      step.peer = step.peer < 0 ? step.peer : party.Rank(step.peer);
    }
  }
  return schedule;
}

}  // namespace ferry::collective
