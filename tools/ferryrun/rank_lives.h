// Ferryrun's record of its ranks' lives: the notices that they have sent (common/rank_notice.h),
// how they have ended, and which of several failures is the cause of the others.
//
// Pure data; main thread. Ranks are numbers below the one given.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "common/rank_exits.h"
#include "common/rank_notice.h"
#include "tools/ferryrun/process.h"

namespace ferry::tools {

// Returns true if the notice says that the rank's daemon has died, or hangs.
bool IsOfLostDaemon(const RankNotice& notice);

class RankLives {
 public:
  void Add() { lives_.emplace_back(); }

  // Takes a notice of kind kEnters, kMeets, kLeaves or kHeardOfEnd, and ignores others.
  void OnNotice(const RankNotice& notice);
  // Notes that a rank's process has ended. The rank has failed unless it exited with 0 and owes no
  // call; one that knows that another rank has failed owes none.
  void OnEnd(uint32_t rank, const ProcessEnd& end);
  // Notes that a rank that has ended had never attached, as its daemon says: it has failed if
  // others need it.
  void MarkAbsent(uint32_t rank);

  bool HasFailed(uint32_t rank) const { return lives_[rank].has_failed; }
  bool HasHeardOfEnd(uint32_t rank) const { return lives_[rank].has_heard_of_end; }
  // True once a rank has heard that its daemon has died, or hangs: no call to that daemon is of
  // use.
  bool has_lost_daemon() const { return has_lost_daemon_; }
  const ProcessEnd& End(uint32_t rank) const { return lives_[rank].end; }
  // Counts how the rank's process has ended, if that is known.
  void CountExit(uint32_t rank, RankExits* exits) const;
  // Returns, each once for a program, ranks that have ended, and as far as is known are not in the
  // latest program in which others wait, which cannot begin without them. A program that closes
  // its descriptors sends no notice either, so their daemons have to be asked.
  std::vector<uint32_t> TakeSilent();
  // The latest of the programs that follow each other in which a rank waits for others, from 1; 0:
  // none has begun.
  uint32_t program() const { return entry_.empty() ? 0 : std::max(program_, 1U); }

  // Describes the end of a failed rank: "exited with code 3 without MPI_Finalize".
  std::string Describe(uint32_t rank) const;
  // Describes the end of a rank that never attached, or not to the latest program: "exited with
  // code 0 without MPI_Init, ...", "... without another MPI_Init, ...".
  std::string DescribeAbsent(uint32_t rank) const;
  // The exit code that the failure gives the job; never 0. For an exit with 0, 1, as Open MPI has
  // it.
  int ExitCode(uint32_t rank) const;
  // Weighs failures: the one with the lower weight is the cause of the other. Peers may see that a
  // rank dies, and end, before the kernel is done with it, so the failure that is seen first need
  // not be the first.
  enum class Weight { kKilled, kByItself, kConsequence };
  Weight WeightOf(uint32_t rank) const;

 private:
  struct Life {
    bool has_entered = false;
    bool is_inside = false;
    uint32_t process = 0;  // then: the one that is
    bool has_heard_of_end = false;
    bool has_ended = false;
    bool has_failed = false;
    bool is_absent = false;
    uint32_t program = 0;    // the latest that it was in
    uint32_t taken_for = 0;  // the program for which TakeSilent has returned it
    std::string exit;        // the call that it owes
    ProcessEnd end;
  };

  std::vector<Life> lives_;
  uint32_t program_ = 0;  // the latest that a rank of Ferry is known to have met
  bool has_lost_daemon_ = false;
  std::string entry_;  // the call in which the first rank has entered; empty: none has
};

}  // namespace ferry::tools
