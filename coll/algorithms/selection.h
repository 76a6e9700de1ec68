// Which algorithm a collective takes: by its name, its size, the number of ranks and how they lie
// on nodes.
//
// A table of rules: the first rule that matches, and whose algorithm can solve the problem, counts.
// Built-in rules stand behind those of a file (selection_file.h), and a choice by name stands
// before both; where all ranks know of data in device memory, a few rules for that stand before the
// other built-in ones. All ranks of a communicator must have the same table, and what rules look at
// is the same on all of them.
//
// Calling thread: any; nothing blocks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "coll/algorithms/algorithm.h"
#include "coll/problem.h"

namespace ferry::collective {

enum class NodeLayout : uint8_t {
  kAny,
  kOneNode,  // all ranks on one node
  kSpread,   // each rank on a node of its own
  kMixed
};
// "any", "one_node", "spread", "mixed".
const char* NodeLayoutName(NodeLayout layout);

// The name of boards (coll/board) in rules. Among ranks that share a node, blocking
// collectives take the board even without a rule. Among nodes with several ranks, by a rule, each
// has a board, and their leaders exchange messages (coll/levels). It has no schedule:
// if there is no board, the next rule counts.
inline constexpr char kBoardName[] = "board";
// Returns true if boards can carry out the problem, among its nodes.
bool IsForBoards(const Problem& problem);

struct SelectionRule {
  Collective collective = Collective::kBarrier;
  // Bytes of the vector, or, where each rank has a block, of a block.
  uint64_t max_bytes = UINT64_MAX;
  uint32_t max_ranks = UINT32_MAX;
  NodeLayout layout = NodeLayout::kAny;
  std::string algorithm;
  uint64_t segment_bytes = 0;
};

struct Choice {
  const Algorithm* algorithm = nullptr;
  uint64_t segment_bytes = 0;
};

class SelectionTable {
 public:
  // The built-in rules.
  SelectionTable() = default;
  // `rules` come before the built-in ones. Each names an algorithm of its collective.
  explicit SelectionTable(std::vector<SelectionRule> rules) : rules_(std::move(rules)) {}

  Choice Choose(const Problem& problem) const;
  // Returns true if the board is to carry out the problem, whose ranks all share a node: no rule
  // says otherwise.
  bool LeavesToBoard(const Problem& problem) const { return rules_.empty() || NamesBoard(problem); }
  // Returns true if boards are to carry out the problem, among any nodes (`node_of` is set). For
  // several nodes a rule has to name boards.
  bool LeavesToBoards(const Problem& problem) const;
  // Returns true if a rule names boards of several nodes.
  bool NamesBoardsOfNodes() const;

 private:
  bool NamesBoard(const Problem& problem) const;

  std::vector<SelectionRule> rules_;
};

// This rank's schedule for the problem, by the algorithm that the table chooses. The schedule of a
// part (Problem::among) is made as if there were no other ranks; its peers are numbered as ranks of
// the whole.
Schedule MakeSchedule(const SelectionTable& table, Problem problem);

NodeLayout LayoutOf(const Problem& problem);
// The built-in rules.
const std::vector<SelectionRule>& BuiltInRules();

}  // namespace ferry::collective
