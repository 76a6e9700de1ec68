// The collectives of a team, or of an active set. If all its PEs are local, they meet at a board in
// memory of the first PE, on the engine of MPI's collectives (coll/board). PEs on several nodes
// meet by messages (message_runs.h). The terms are MPI's: a member is a PE's index in the team.
//
// Calling thread: one at a time, for one assembly. Functions that block end the program, with an
// error message, when a PE that they wait for has died, has left or has given the collective up
// (then a queue's call ends alone: fail.h), or is in another collective.
//
// All members take part in the same collectives, or they would be out of step. So a member that
// gives up before it has come to one still tells the others, which give up, too: RunAfter,
// SyncAfter and GatherAfter.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "client/api/calls.h"
#include "coll/board/board.h"
#include "coll/board/board_run.h"
#include "coll/messages/front_link.h"
#include "coll/problem.h"
#include "common/status.h"
#include "shmem/base/fail.h"
#include "shmem/base/message_runs.h"

namespace ferry::shmem {

// How members reach each other: symmetric memory by its own mapping, other memory by libferry.
class AssemblyLink : public collective::FrontLink {
 public:
  explicit AssemblyLink(std::vector<int> pes);

  int PeOf(int member) const { return WorldRank(member); }

  ErrorCode StateOf(int member) override;
  collective::NodeAddress Locate(const void* pointer, size_t size_bytes) override;
  ErrorCode Read(int member, const collective::NodeAddress& from, void* to,
                 size_t size_bytes) override;
  ErrorCode Write(int member, const collective::NodeAddress& to, const void* from,
                  size_t size_bytes) override;
  void* TakeStaging(size_t size_bytes) override;
  void GiveStaging(void* memory) override;
};

// The meeting place of an assembly: a board or a context; neither: nowhere.
struct MeetingPlace {
  uint64_t board_offset = 0;  // of the board in the first PE's region, zeroed
  uint32_t context = 0;       // of messages (message_contexts.h)

  bool is_nowhere() const { return board_offset == 0 && context == 0; }
};

class Assembly {
 public:
  // Returns the size of a board for so many members.
  static size_t BoardBytes(int members);

  // `pes`: of the world, in the order of the team; `self`: this PE's index.
  Assembly(const std::vector<int>& pes, int self, const MeetingPlace& where);

  // Returns true if the members meet at a board: then all are local.
  bool has_board() const { return board_.has_value(); }
  // Leaves the board, to which this PE does not come any more. Returns true to the last PE to
  // leave: then no PE looks at the board again.
  bool Leave() { return board_->Leave(); }

  int self() const { return sync_.rank; }
  int size() const { return sync_.size; }
  int PeOf(int member) const { return link_.PeOf(member); }
  const MeetingPlace& where() const { return where_; }
  // Returns true while a thread is in a collective.
  bool is_busy() const { return is_busy_.load(std::memory_order_relaxed); }

  // Returns once all members have called it. Blocks.
  void Sync(const char* call);
  // Sends `size_bytes` of each member to all others; `all` gets them by member. Blocks as Sync
  // does.
  void Gather(const char* call, const void* own, size_t size_bytes, void* all);
  // Carries a collective out; `problem.rank` and `size` are set here. Blocks.
  void Run(const char* call, collective::Problem* problem, const collective::Binding& binding);
  // Runs before(), then the collective. If before() gives up (fail.h), this member does not take
  // part, and tells the others so.
  template <typename Before>
  void RunAfter(const char* call, collective::Problem* problem, const collective::Binding& binding,
                Before&& before) {
    OrRenounce(call, problem, before);
    Run(call, problem, binding);
  }
  template <typename Before>
  void SyncAfter(const char* call, Before&& before) {
    RunAfter(call, &sync_, {}, before);
  }
  template <typename Before>
  void GatherAfter(const char* call, const void* own, size_t size_bytes, void* all,
                   Before&& before) {
    collective::Problem problem = GatherOf(size_bytes);
    RunAfter(call, &problem, {.input = own, .output = all}, before);
  }

 private:
  // For those who look at the PE (client/api/calls.h).
  struct Note : client::CallNote {
    Note(const char* function, const Assembly& assembly, const collective::Problem& problem,
         uint64_t run)
        : CallNote(&DescribeIt), function(function), assembly(assembly), problem(problem) {
      number = run;
      has_number = true;
    }

    uint64_t Bytes() const;  // of this PE's part

    const char* const function;
    const Assembly& assembly;
    const collective::Problem& problem;

   private:
    static void DescribeIt(const CallNote& note, shm::CallDescription* description);
  };

  uint32_t GroupNumber() const;
  static collective::Problem GatherOf(size_t size_bytes);
  template <typename Before>
  void OrRenounce(const char* call, collective::Problem* problem, Before& before) {
    try {
      before();
    } catch (const GivenUp& given_up) {
      Renounce(call, problem, given_up.status.code());
      throw;
    }
  }
  // Takes part in the collective for the others only, who learn that this member has failed.
  void Renounce(const char* call, collective::Problem* problem, ErrorCode why);
  void TellOfFailure(const collective::Problem& problem, ErrorCode why);
  // Runs with copies in host memory of data that CPUs do not reach.
  void RunOnCopies(const char* call, const collective::Problem& problem,
                   const collective::Binding& binding);
  void RunWhereItIs(const char* call, const collective::Problem& problem,
                    const collective::Binding& binding);
  int FindEnded() const;
  void GiveUpForEnded(const char* call) const;
  [[noreturn]] void Explain(const char* call, const collective::RunFailure& failure) const;
  [[noreturn]] void GiveUpCopy(const char* call, ErrorCode error) const;

  AssemblyLink link_;
  const MeetingPlace where_;
  std::optional<collective::Board> board_;
  std::optional<MessageRuns> messages_;  // where there is no board
  const collective::BoardLimits limits_;
  collective::Problem sync_;
  uint64_t number_ = 0;
  uint64_t runs_ = 0;
  std::atomic<bool> is_busy_{false};
};

}  // namespace ferry::shmem
