// The schedules that earlier calls have made: programs call the same collectives again and again,
// and to make a schedule takes longer than to look one up.
//
// Calling thread: one at a time. Nothing blocks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <utility>

#include "coll/algorithms/selection.h"
#include "coll/problem.h"
#include "coll/runner.h"
#include "common/number_list.h"

namespace ferry::collective {

class KeptRuns {
 public:
  class Taken;

  // `runner` outlives it. `self`: this process among the ranks of problems, which live on the nodes
  // `node_of`.
  KeptRuns(Runner* runner, int self, NumberList node_of)
      : runner_(runner), self_(self), node_of_(std::move(node_of)) {}

  // Returns a run that is not under way, of the algorithm that `table` chooses. All ranks have the
  // same table.
  Taken Take(const Problem& problem, const SelectionTable& table);
  // Makes this rank's schedule by that algorithm.
  Schedule MakeSchedule(const Problem& problem, const SelectionTable& table) const;
  // Gives back a run that is done.
  void GiveBack(Taken taken);
  void Clear() { kept_.clear(); }

 private:
  struct Kept {
    uint64_t key = 0;
    Problem problem;
    std::unique_ptr<CollectiveRun> run;  // null while a call has it
    uint64_t last_use = 0;
  };

  Taken Make(uint64_t key, const Problem& problem, const SelectionTable& table);
  Kept* FindRoom();

  Runner* const runner_;
  const int self_;
  const NumberList node_of_;  // by rank
  uint64_t uses_ = 0;
  std::deque<Kept> kept_;  // whose addresses stay
  Kept* last_ = nullptr;   // the run of the last call
};

class KeptRuns::Taken {
 public:
  Taken() = default;
  CollectiveRun* run() const { return run_.get(); }
  // Leaves a run alone that never ends, since the connection has ended: messages still name it.
  void Abandon() { (void)run_.release(); }

 private:
  friend class KeptRuns;
  Taken(std::unique_ptr<CollectiveRun> run, Kept* home) : run_(std::move(run)), home_(home) {}

  std::unique_ptr<CollectiveRun> run_;
  Kept* home_ = nullptr;  // null: it is not kept
};

}  // namespace ferry::collective
