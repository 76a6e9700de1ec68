// Runs programs: watches their counters, begins operations whose trigger is reached, and adds to
// counters at their ends.
//
// Pure: no I/O, no clock, no threads; executors move the bytes, and the caller tells the time. The
// same engine runs in a rank and in a simulator.
//
// Failure. An operation that fails, fails its counters with its error, and whatever waits on those
// ends with that error, across programs: nothing waits for ever. The program can then not be
// started again; install it anew.
//
// Calling thread: one, for every member. Only Install allocates.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "common/slot_map.h"
#include "common/status.h"
#include "engine/program/executor.h"
#include "engine/program/operation.h"
#include "shm/counter.h"

namespace ferry::engine {

struct ProgramCounts {
  std::array<uint64_t, kPlacements> begun{};  // operations, by where they ran
  uint64_t overflowed = 0;  // of these, how many found no room where they had best run
  uint64_t failed = 0;      // operations that failed or never ran for the failure of others
};

class ProgramEngine {
 public:
  // By placement; null where this process offers none. There is one for kDaemon, which takes what
  // the others have no room for. They outlive the engine.
  using Executors = std::array<Executor*, kPlacements>;
  explicit ProgramEngine(const Executors& executors);
  ~ProgramEngine();

  // kInvalidArgument says what is wrong with the program (program_check.h). Counters count from
  // what they are at now.
  StatusOr<ProgramId> Install(const ProgramSpec& spec);
  // Starts may be made ahead; each runs when its triggers are reached. kNotFound: there is no such
  // program. Otherwise the error with which an operation of it failed.
  ErrorCode Start(ProgramId program);
  // Operations under way end as they do; what has been started and not begun fails with kCancelled,
  // and so does what other programs wait for and nobody will add any more.
  void Free(ProgramId program);
  // Whether an operation of the program is started and has not ended. False for one that is gone.
  bool IsBusy(ProgramId program);

  // Looks at the counters that others add to, tries again what found no room, and ends what is
  // late: deadlines run from the first Poll after the beginning. `now_ns` never goes back. Returns
  // how many operations began or ended meanwhile.
  uint32_t Poll(uint64_t now_ns);
  // The end of a run; a token of one that was abandoned is ignored.
  void Completed(Token token, ErrorCode error);

  const ProgramCounts& counts() const { return counts_; }
  size_t program_count() const { return program_count_; }
  // When Poll is due at the latest; UINT64_MAX: no operation under way has a deadline.
  uint64_t next_deadline_ns() const { return next_deadline_ns_; }

 private:
  enum class Phase : uint8_t { kArmed, kStalled, kRunning, kDead };
  struct Word;
  struct Run;
  struct Program;
  struct Reference {
    ProgramId program;
    uint32_t operation;
  };

  Word* Use(shm::CounterLayout* layout, bool others_add);
  void Release(Word* word);
  void Touch(Word* word);
  void Settle();
  void Look(Word* word);
  void LookAt(Reference waiter, uint64_t value);
  void Begin(Program& program, Run& run);
  bool TryBegin(Program& program, Run& run);
  void Finish(Program& program, Run& run);
  void Fail(Program& program, Run& run, ErrorCode error);
  void NoteIdle(const Program& program, const Run& run);
  void Retry();
  void Date();
  void EndLate();
  void Forget(ProgramId id);
  Run* RunOf(Reference reference, Program** program);
  Executor* ExecutorAt(Placement placement) const;
  static bool IsUnderWay(const Run& run, Token token);

  const Executors executors_;
  SlotMap<ProgramId, std::unique_ptr<Program>> programs_;
  std::unordered_map<const shm::CounterLayout*, std::unique_ptr<Word>> words_;
  std::vector<Word*> watched_;       // those that others add to
  std::vector<Word*> touched_;       // those that have changed and were not looked at since
  std::vector<Reference> stalled_;   // in the order in which their triggers were reached
  std::vector<Reference> undated_;   // begun since the last Poll, with a deadline
  std::vector<ProgramId> finished_;  // freed programs whose last run may have ended
  bool settling_ = false;
  size_t run_count_ = 0;
  size_t program_count_ = 0;
  uint64_t now_ns_ = 0;
  uint64_t next_deadline_ns_ = UINT64_MAX;
  uint32_t events_ = 0;  // since Poll began
  ProgramCounts counts_;
};

}  // namespace ferry::engine
