// Carries schedules out: blocking, nonblocking and persistent collectives alike.
//
// A schedule is installed once as a program of engine/program and started as often as wanted; the
// operations of the program are the messages, copies and reductions of its steps. One runner per
// communicator.
//
// Failure. A failure on one rank must not leave the others waiting. So a run that fails goes on to
// its end. It still receives, and throws away what comes. In place of each send it sends a notice,
// a message of the wrong size, which fails the receiver's run in turn. It leaves out copies and
// reductions. All messages of the collective are consumed, and the communicator can be used on.
//
// Calling thread: one at a time, for every member. Nothing blocks. Only Prepare and Start allocate.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "client/mpi/collective/binding.h"
#include "client/mpi/collective/messenger.h"
#include "client/mpi/collective/schedule.h"
#include "common/status.h"
#include "engine/program/program_engine.h"

namespace ferry::mpi {

class Runner;

// A schedule made ready on one communicator. Started again once it is done.
class CollectiveRun {
 public:
  ~CollectiveRun();
  CollectiveRun(const CollectiveRun&) = delete;
  CollectiveRun& operator=(const CollectiveRun&) = delete;

  // False from Start until the last step has ended.
  bool is_done() const { return steps_left_ == 0; }
  // The failure of the last start, once it is done.
  const RunFailure& failure() const { return failure_; }
  const Schedule& schedule() const { return *schedule_; }

 private:
  friend class Runner;
  bool MakeScratch(int device);
  void FreeScratch();
  CollectiveRun(Runner* runner, std::shared_ptr<const Schedule> schedule);

  void* Address(const Range& range) const {
    return bases_[static_cast<size_t>(range.place)] + range.offset_bytes;
  }
  bool has_failed() const { return failure_.code != ErrorCode::kOk; }
  void Fail(const RunFailure& failure);

  Runner* const runner_;
  const std::shared_ptr<const Schedule> schedule_;
  std::vector<shm::CounterLayout> counters_;
  engine::ProgramId program_{};
  std::array<char*, kPlaces> bases_{};
  Reducer* reducer_ = nullptr;
  int scratch_device_ = kHostMemory;
  uint32_t sequence_ = 0;
  size_t steps_left_ = 0;
  RunFailure failure_;
};

class Runner : private engine::Executor {
 public:
  // `messenger` outlives it, and it outlives its runs.
  explicit Runner(Messenger* messenger);

  std::unique_ptr<CollectiveRun> Prepare(std::shared_ptr<const Schedule> schedule);
  // `run` must be done. `sequence` is the same on all ranks and another one for each start on the
  // communicator: messages of different collectives never meet.
  void Start(CollectiveRun* run, const Binding& binding, uint32_t sequence);
  // Looks at messages under way. Returns whether anything ended or began.
  bool Advance();
  // Whether a run is not done.
  bool is_busy() const { return !pending_.empty() || is_stalled_; }
  // Whether nothing can happen before one message, the only one under way, has ended.
  bool waits_for_one() const { return pending_.size() == 1 && !is_stalled_; }
  // How many starts have come to their end.
  uint64_t ended_runs() const { return ended_runs_; }

 private:
  friend class CollectiveRun;
  struct Pending {
    Messenger::Ticket ticket = 0;
    CollectiveRun* run = nullptr;
    engine::Token token;
  };

  ErrorCode Begin(const engine::Operation& operation, engine::Token token) override;
  void Renounce(const engine::Operation& operation, ErrorCode error) override;
  void Abandon(const engine::Operation& operation, engine::Token token) override;

  ErrorCode BeginMessage(CollectiveRun* run, const Step& step, engine::Token token);
  static void Compute(Messenger* messenger, CollectiveRun* run, const Step& step);
  void CountStep(CollectiveRun* run);
  void NoteEnd(CollectiveRun* run, engine::Token token, ErrorCode error, size_t received_bytes);

  Messenger* const messenger_;
  engine::ProgramEngine engine_;
  std::vector<Pending> pending_;
  uint64_t ended_runs_ = 0;
  bool is_stalled_ = false;  // an operation found no room
};

}  // namespace ferry::mpi
