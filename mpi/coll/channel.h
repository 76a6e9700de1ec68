// The channel carries out a communicator's collectives. If the ranks share a node, blocking
// collectives use the channel's board, and nonblocking ones another (board_queue.h). If some of
// them share a node, blocking collectives may go in two levels (coll/levels). All others use the
// channel's messages, its runner, and the schedules that earlier calls have made.
//
// Calling thread: any that the thread level allows; a channel's own lock keeps them apart once
// several threads may call.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "client/api/front_end.h"
#include "coll/levels/two_levels.h"
#include "coll/messages/kept_runs.h"
#include "coll/problem.h"
#include "coll/runner.h"
#include "common/status.h"
#include "mpi/base/failure.h"
#include "mpi/coll/board_queue.h"
#include "mpi/coll/call_watch.h"
#include "mpi/coll/comm_messenger.h"
#include "mpi/coll/node_board.h"
#include "mpi/coll/watched.h"
#include "mpi/comm/comm.h"

namespace ferry::mpi {

// A start of a matched collective by its rank (client/triggered/program.h).
struct ProgramRun {
  client::RequestHandle program = 0;
  bool is_under_way = false;
  ErrorCode error = ErrorCode::kOk;  // of the last start, once it is done

  bool is_done() const { return !is_under_way; }
};

class Comparison;
struct CallDescription;

// Returns the error class and text that a program gets for a run that failed (with another code
// than kOk).
Failure DescribeFailedRun(const collective::RunFailure& failure);

class Channel : public Comm::Extension, public Watched {
 public:
  // Returns the communicator's channel, made at the first call.
  static Channel& Of(Comm& comm) {
    Comm::Extension* const extension = comm.extension();
    return extension != nullptr ? static_cast<Channel&>(*extension) : MakeFor(comm);
  }
  explicit Channel(const Comm& comm);
  ~Channel() override;

  // This process's number among the ranks of problems.
  int self() const { return messenger_.self(); }
  int size() const { return messenger_.size(); }
  // Returns the rank in the job of one of those ranks.
  int WorldRank(int peer) const { return messenger_.WorldRank(peer); }

  // Names the blocking call that begins; `call` is the MPI function. To be called by each blocking
  // call.
  void Name(const char* call) { watch_.SetBlockingCall({calls_++, call}); }
  // Returns its number.
  uint64_t call_number() const { return watch_.blocking_call().number; }
  // Counts a blocking call, at one of which the ranks make their board; so it may block. To be
  // called in each blocking call in which all ranks take part, even if it is in vain; where ranks
  // compare their calls, only once they have found that they belong together.
  void Enter() {
    if (++entered_ == kBoardCall && boards_ != Boards::kNone) [[unlikely]] {
      MakeBoard();
    }
  }
  // Counts a nonblocking call that is not persistent. Does not block.
  void EnterNonblocking() { ++entered_nonblocking_; }
  // Returns the number of such a call among those that Name counts.
  uint64_t CountCall() { return calls_++; }
  // Returns true if all ranks share a node, and so may have a board.
  bool MayHaveOneBoard() const { return boards_ == Boards::kOne; }
  // Fills in the problem's rank and size, and carries it out. `failure` is set if it fails. Blocks.
  // `number`: of TakeNumber, or kNoNumber.
  void Run(collective::Problem* problem, const collective::Binding& binding,
           collective::RunFailure* failure, uint32_t number = kNoNumber);
  // Gives a call up, in place of Run: this rank cannot go through with it, and tells the ranks that
  // wait for it on the board. Once there are boards in several nodes, the call takes a number all
  // the same.
  void Renounce();
  // Gives a call up in place of StartNonblocking. Other runs may be under way afterwards.
  void RenounceNonblocking();

  // If ranks compare their calls (ComparesCalls), each call takes a number of the channel, even if
  // its arguments were wrong, so that ranks that go on stay in step.
  static constexpr uint32_t kNoNumber = UINT32_MAX;
  uint32_t TakeNumber();
  // Begins the comparison for a call with that number (`persistent`: of NextPersistentNumber).
  // Everything else on the channel goes on meanwhile; `go_on` is called, under the channel's lock,
  // if the calls belong together.
  std::shared_ptr<Comparison> Compare(CallDescription own, uint32_t number, bool persistent,
                                      std::function<void()> go_on);
  // Blocks until the run is done.
  template <typename Run>  // as Advance
  void Await(const Run& run) {
    struct Waiting {
      Channel* channel;
      const Run* run;
    } waiting{this, &run};
    AwaitCall(
        watch_.blocking_call(),
        [](void* argument) {
          const auto* self = static_cast<Waiting*>(argument);
          return self->channel->Advance(*self->run);
        },
        &waiting);
  }
  // Waits for `call` until done(argument) is true, which calls Advance, and reports long waits.
  void AwaitCall(const CallWatch::Call& call, bool (*done)(void*), void* argument);

  // The parts of Run, for calls that do not block. A run that was taken is given back when it is
  // done.
  using Taken = collective::KeptRuns::Taken;
  Taken Take(const collective::Problem& problem);
  void GiveBack(Taken taken);
  // Starts a call that is neither persistent nor compared. `started`, and the objects that it
  // names, stay until it is done.
  struct Started;
  void StartNonblocking(Started* started, collective::Problem* problem,
                        const collective::Binding& binding);
  // Starts a run in `go_on` of Compare, which holds the channel's lock.
  void StartLocked(collective::CollectiveRun* run, const collective::Binding& binding,
                   uint32_t number) {
    runner_.Start(run, binding, number);
  }
  // Persistent operations have numbers of their own, so that they may be started in any order.
  uint32_t NextPersistentNumber();
  void StartPersistent(collective::CollectiveRun* run, const collective::Binding& binding,
                       uint32_t number);
  // Takes `count` such numbers in a row, for an operation that consists of several runs: *first,
  // and those that UnitNumber finds. Numbers come round again. MPI_ERR_OTHER: an operation of this
  // rank still has some of these; ranks stay in step all the same.
  static constexpr uint32_t kUnitNumbers = 1U << 16;
  Failure TakeUnitNumbers(uint32_t count, uint32_t* first);
  void GiveBackUnitNumbers(uint32_t first, uint32_t count);
  static uint32_t UnitNumber(uint32_t first, uint32_t unit);
  // Starts one of several runs; the caller calls Advance afterwards. `before`: as of Runner::Start.
  void StartUnit(collective::CollectiveRun* run, const collective::Binding& binding,
                 uint32_t number, const collective::RunFailure& before);
  // Returns this rank's schedule for a problem, by the algorithm that all ranks choose.
  collective::Schedule MakeSchedule(const collective::Problem& problem) const;
  // Returns this rank's schedule for a problem on a queue (QueueTable).
  collective::Schedule MakeScheduleOfQueue(const collective::Problem& problem) const;
  // Makes a run of the schedule that no other operation takes. It is given back when it is done.
  std::unique_ptr<collective::CollectiveRun> Prepare(
      std::shared_ptr<const collective::Schedule> schedule);
  void GiveBack(std::unique_ptr<collective::CollectiveRun> run);
  // Names a rank that has died or left, where a failure may be the consequence.
  void BlameEndedRank(collective::RunFailure* failure) const;
  // Returns a rank that has died, and sets *how; if none has, one that has left (kNotFound). -1: no
  // rank is known to have ended.
  int FindEnded(ErrorCode* how) const;
  // Gives up a run of whose ranks one has died: it waits for none of the others any more, which may
  // have given up without a message. Messages that cannot be cancelled end by themselves.
  void GiveUp(collective::CollectiveRun* run);
  // Starts a matched collective; returns the status of StreamQueues::StartProgram. `run` stays
  // until it is done.
  Status StartProgram(ProgramRun* run);
  // Carries the run on as far as it goes without waiting. Returns true once the run is done.
  template <typename Run>  // CollectiveRun, Started, ProgramRun, Comparison
  bool Advance(const Run& run) {
    const auto lock = Lock();
    looks_.store(looks_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    if (!run.is_done()) {
      AdvanceLocked();
    }
    return run.is_done();
  }
  // While it exists, a thread of the program calls Advance again and again.
  class Waiting {
   public:
    explicit Waiting(Channel* channel) : channel_(*channel) { channel_.waiting_++; }
    ~Waiting() { channel_.waiting_--; }
    Waiting(const Waiting&) = delete;
    Waiting& operator=(const Waiting&) = delete;

   private:
    Channel& channel_;
  };
  // Returns true if the program has called Advance since the last question. For one thread.
  bool IsLookedAfter() override {
    const uint64_t looks = looks_.load(std::memory_order_relaxed);
    return std::exchange(seen_looks_, looks) != looks || waiting_ != 0;
  }
  // Returns true if an operation is under way.
  bool IsBusy() override {
    const auto lock = Lock();
    return IsBusyLocked();
  }
  // Gives up, at the end, when no thread advances the channel any more, the making of the board for
  // nonblocking calls, and the comparisons of calls that have failed, to which other ranks may
  // never have come.
  void Abandon() override;
  // Carries on all operations under way, as Advance does for one run.
  Progress AdvanceAll() override;

 private:
  friend class Comparison;

  // The number of the blocking or nonblocking call that makes the board: a board that is used less
  // is not worth its memory.
  static constexpr uint64_t kBoardCall = 4;

  // The boards that blocking calls may have: one for all ranks, or one in each node with several.
  enum class Boards : uint8_t { kNone, kOne, kInEachNode };
  // Parts of a collective with one number.
  class Parts;

  static Channel& MakeFor(Comm& comm);
  void MakeBoard();
  bool RunOnBoard(collective::Problem* problem, const collective::Binding& binding,
                  collective::RunFailure* failure);
  // `before`: Runner::Start.
  collective::RunFailure RunByMessages(const collective::Problem& problem,
                                       const collective::Binding& binding, uint32_t number,
                                       const collective::RunFailure& before = {});
  std::unique_lock<std::mutex> Lock();
  bool IsBusyLocked() const;
  void AdvanceLocked();
  void GiveUpLocked(collective::CollectiveRun* run);
  BoardQueue* BoardQueueLocked();
  void StartByMessages(Started* started);
  bool StepComparisons();
  uint32_t NextNumber(uint32_t number);
  void RunPatiently(collective::CollectiveRun* run);
  Taken TakeLocked(const collective::Problem& problem);
  void GiveBackLocked(Taken taken) { kept_.GiveBack(std::move(taken)); }
  static NumberList NodesOf(const collective::FrontMessenger& messenger);

  const Comm& comm_;
  // Blocking calls so far, of which there is one at a time.
  uint64_t entered_ = 0;
  uint64_t calls_ = 0;  // all calls that are not persistent; made by one thread at a time
  Boards boards_ = Boards::kNone;
  std::unique_ptr<NodeBoard> board_;               // null: there is none, or none yet
  std::unique_ptr<collective::TwoLevels> levels_;  // from when there may be boards in each node
  uint64_t entered_nonblocking_ = 0;               // in the same way
  std::atomic<uint32_t> waiting_{0};
  std::atomic<uint64_t> looks_{0};           // Advance's
  uint64_t seen_looks_ = 0;                  // by IsLookedAfter
  std::mutex mutex_;                         // guards what follows
  std::unique_ptr<BoardQueue> board_queue_;  // null: there is none, or none yet
  CommMessenger messenger_;
  CallWatch watch_;  // has a lock of its own
  collective::Runner runner_;
  collective::KeptRuns kept_;
  std::vector<ProgramRun*> programs_;  // not done
  std::vector<std::shared_ptr<Comparison>> comparisons_;
  uint32_t next_number_ = 0;
  uint32_t next_persistent_ = 0;
  uint32_t next_unit_ = 0;
  std::vector<bool> taken_units_;  // by number; empty until the first are taken
};

// A start of a nonblocking collective: on the board, or by messages.
struct Channel::Started : BoardCall {
  Taken taken;  // once the call is known to go by messages
  uint32_t message_number = 0;
  bool is_on_board = false;

  bool is_done() const {
    return !is_on_board && (taken.run() == nullptr || taken.run()->is_done());
  }
  const collective::RunFailure& outcome() const {
    return taken.run() != nullptr ? taken.run()->failure() : failure;
  }
};

}  // namespace ferry::mpi
