// Carries schedules out: blocking, nonblocking and persistent collectives alike.
//
// A schedule is prepared once and started as often as wanted. Its steps begin as engine/schedule
// counts them ready. One runner per communicator.
//
// Failure. A failure on one rank must not leave the others waiting. So a run that fails goes on to
// its end. It still receives, and throws the data away. In place of each send it sends a notice, a
// message of the wrong size, which fails the receiver's run in turn; the message that was refused,
// if that was the failure, begins once more so. It leaves out copies and reductions. All messages
// of the collective are consumed, and the communicator can be used on.
//
// Calling thread: one at a time, for every member. Nothing blocks. Only Prepare and Start allocate.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "coll/messenger.h"
#include "coll/schedule.h"
#include "engine/schedule/schedule.h"

namespace ferry::collective {

class Runner;

// A schedule made ready on one communicator. It may be started again once it is done.
class CollectiveRun {
 public:
  ~CollectiveRun();
  CollectiveRun(const CollectiveRun&) = delete;
  CollectiveRun& operator=(const CollectiveRun&) = delete;

  // False from Start until the last step has ended.
  bool is_done() const { return steps_.is_done(); }
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
  engine::ScheduleRun steps_;
  std::array<char*, kPlaces> bases_{};
  Reducer* reducer_ = nullptr;
  int scratch_device_ = kHostMemory;
  uint32_t sequence_ = 0;
  RunFailure failure_;
};

class Runner {
 public:
  // `messenger` outlives it, and it outlives its runs.
  explicit Runner(Messenger* messenger) : messenger_(messenger) {}

  std::unique_ptr<CollectiveRun> Prepare(std::shared_ptr<const Schedule> schedule);
  // `run` must be done. `sequence` is the same on all ranks and another one for each start on the
  // communicator: messages of different collectives never meet. `before`: a failure on this rank,
  // so that the run only tells the others; or none.
  void Start(CollectiveRun* run, const Binding& binding, uint32_t sequence,
             const RunFailure& before = {});
  // Looks at messages under way. Returns true if any ended or began.
  bool Advance();
  // Returns true while any run is not done.
  bool is_busy() const { return !pending_.empty() || !stalled_.empty(); }
  // Returns true if exactly one message is under way, and nothing else can happen before it ends.
  bool waits_for_one() const { return pending_.size() == 1 && stalled_.empty(); }
  // Returns true if a message from that peer is under way to this rank.
  bool WaitsForMessageFrom(int peer) const;
  // Cancels all messages with a peer that takes no part any more: they fail with kCancelled, unless
  // they end first.
  void CancelMessagesWith(int peer);
  // Cancels all messages of one run, which goes on, and fails.
  void CancelMessagesOf(const CollectiveRun* run);
  // The number of starts that have ended.
  uint64_t ended_runs() const { return ended_runs_; }

 private:
  friend class CollectiveRun;
  // A message of a run: under way, or not begun for want of room.
  struct Message {
    Messenger::Ticket ticket = 0;
    CollectiveRun* run = nullptr;
    StepId step = 0;
  };

  void BeginReady(CollectiveRun* run);
  bool BeginMessage(CollectiveRun* run, StepId id);
  void EndMessage(CollectiveRun* run, StepId id, ErrorCode error, size_t received_bytes);
  void Compute(CollectiveRun* run, const Step& step);
  void EndStep(CollectiveRun* run, StepId id);
  bool RetryStalled();

  Messenger* const messenger_;
  std::vector<Message> pending_;
  std::vector<Message> stalled_;  // in the order in which they became ready
  size_t prepared_steps_ = 0;     // of all runs there are
  uint64_t ended_runs_ = 0;
};

}  // namespace ferry::collective
