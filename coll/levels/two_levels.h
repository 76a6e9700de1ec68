// Blocking collectives of ranks of which some share a node, in two levels: the ranks of a node meet
// on its board, and one rank of each node, its leader, exchanges messages with the others. So each
// byte crosses the network once for a node, whatever the number of its ranks.
//
// A collective has up to three parts: in the node, towards the leader; among the leaders; in the
// node, from the leader. The leader is the node's first rank, or, on the root's node, the root.
// Each part is a problem of its own: nodes carry out theirs as a communicator of their ranks would,
// and leaders as one whose ranks are each on a node of their own. Where a node has no board, or
// memory that boards do not reach, it does its part by messages; the others need not know.
//
// Failure. A rank that fails in one part reports it in the next: leaders send notices (runner.h),
// and give up on the board. So all ranks that wait for the result fail, in whichever part the
// failure was.
//
// Calling thread: one at a time. Blocks.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "coll/algorithms/selection.h"
#include "coll/board/board.h"
#include "coll/board/board_run.h"
#include "coll/messenger.h"
#include "coll/problem.h"
#include "common/number_list.h"

namespace ferry::collective {

// Carries out parts of one collective by messages.
class PartsByMessages {
 public:
  virtual ~PartsByMessages() = default;
  // Carries out the part (Problem::among names its ranks, of which this is one), or only tells the
  // others of the failure `before`. Blocks.
  virtual RunFailure Run(const Problem& part, const Binding& binding, const RunFailure& before) = 0;
};

class TwoLevels {
 public:
  // Makes the two levels for rank `self`; the ranks live on the nodes `node_of`, several nodes.
  // `board` is that of this rank's node, with its ranks in ascending order; null: there is none.
  // `messenger` gives scratch memory. Both outlive it.
  TwoLevels(const NumberList& node_of, int self, Board* board, const BoardLimits& limits,
            Messenger* messenger);
  ~TwoLevels();
  TwoLevels(const TwoLevels&) = delete;
  TwoLevels& operator=(const TwoLevels&) = delete;

  // Returns true if the table chooses two levels for the problem; the answer is the same on all
  // ranks.
  bool Takes(const Problem& problem, const SelectionTable& table);
  // Carries it out as the ranks' collective `number`, greater than that of any before.
  RunFailure Run(uint64_t number, const Problem& problem, const Binding& binding,
                 PartsByMessages* messages);
  // Called in place of Run: Skip if this rank carries the collective out in another way, Renounce
  // if it does not carry it out at all.
  void Skip(uint64_t number);
  void Renounce(uint64_t number);

 private:
  // The parts inside a node, each of which has a number of its own on the board.
  enum Part : uint64_t { kCollect, kSpread, kParts };

  // One of the calls.
  struct Call {
    uint64_t number;
    const Problem& problem;
    const Binding& binding;
    PartsByMessages* messages;
    int leader;  // of this rank's node
  };
  // The data of a leader before its part among leaders.
  struct Data {
    const void* input;
    void* output;
    bool in_place;
  };
  struct Decision {
    size_t block_bytes = SIZE_MAX;
    bool commutative = false;
    bool is_taken = false;
  };
  struct Scratch {
    void* memory = nullptr;
    size_t size_bytes = 0;
    int device = kHostMemory;
  };

  bool is_alone() const { return local_.size() == 1; }
  int NodeOf(int rank) const { return node_of_[static_cast<size_t>(rank)]; }
  int LeaderFor(const Problem& problem) const;
  RunFailure Collect(const Call& call, Data* data);
  RunFailure Spread(const Call& call, const RunFailure& before);
  RunFailure RunInNode(const Call& call, Part which, Problem part, const Binding& binding,
                       const RunFailure& before);
  Problem AmongLeaders(const Problem& problem, const Data& data) const;
  void* TakeScratch(size_t size_bytes, int device);

  const NumberList node_of_;
  const int self_;
  std::vector<int> local_;      // the ranks of this node
  int index_ = 0;               // this one among them
  const bool are_nodes_alike_;  // as many ranks on each
  Board* const board_;
  const BoardLimits limits_;
  Messenger* const messenger_;
  std::array<Decision, kCollectives> decisions_;  // the last ones
  Scratch scratch_;
};

}  // namespace ferry::collective
