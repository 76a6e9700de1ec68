// What a communicator's collectives run on: its board, where its ranks share a node, for blocking
// ones; its messages, its runner, and the schedules that calls like those before have made, for
// all.
//
// Calling thread: any that the thread level allows; a channel's own lock keeps them apart once
// several threads may call.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "client/core/front_end.h"
#include "client/mpi/channel/front_messenger.h"
#include "client/mpi/channel/node_board.h"
#include "client/mpi/collective/problem.h"
#include "client/mpi/collective/runner.h"
#include "client/mpi/comm/comm.h"
#include "client/mpi/error/failure.h"
#include "common/status.h"

namespace ferry::mpi {

// A start of a matched collective by its rank (client/triggered/program.h).
struct ProgramRun {
  client::RequestHandle program = 0;
  bool is_under_way = false;
  ErrorCode error = ErrorCode::kOk;  // of the last start, once it is done

  bool is_done() const { return !is_under_way; }
};

class Channel : public Comm::Extension {
 public:
  // The communicator's, made at the first call.
  static Channel& Of(Comm& comm) {
    Comm::Extension* const extension = comm.extension();
    return extension != nullptr ? static_cast<Channel&>(*extension) : MakeFor(comm);
  }
  explicit Channel(const Comm& comm);
  ~Channel() override;

  // This process among the ranks of problems.
  int self() const { return messenger_.self(); }
  int size() const { return messenger_.size(); }
  // Of them, in the job.
  int WorldRank(int peer) const { return messenger_.WorldRank(peer); }

  // To be called at the beginning of each blocking call, in which all ranks take part, even if it
  // is in vain. May block: the ranks make their board then.
  void Enter() {
    if (++entered_ == kBoardCall && may_have_board_) [[unlikely]] {
      board_ = NodeBoard::SetUp(comm_);
    }
  }
  // Carries the problem out, whose rank and size it fills in. `failure` is set if it fails. Blocks.
  void Run(Problem* problem, const Binding& binding, RunFailure* failure);
  // In place of Run: this rank cannot go through with it, and tells those who wait for it on the
  // board.
  void Renounce();

  // The same in parts, for what does not block. A run that was taken is given back when it is done.
  class Taken;
  Taken Take(const Problem& problem);
  void GiveBack(Taken taken);
  void Start(CollectiveRun* run, const Binding& binding);
  // Persistent operations have numbers of their own, so that they may be started in any order.
  uint32_t NextPersistentNumber();
  void StartPersistent(CollectiveRun* run, const Binding& binding, uint32_t number);
  // Of one that is matched; what FrontEnd::StartProgram says. `run` stays until it is done.
  Status StartProgram(ProgramRun* run);
  // Does what can be done without waiting. Returns whether the run is done.
  template <typename Run>  // CollectiveRun, ProgramRun
  bool Advance(const Run& run) {
    const auto lock = Lock();
    if (!run.is_done()) {
      AdvanceLocked();
    }
    return run.is_done();
  }
  // The same for all that is under way.
  struct Progress {
    bool is_busy;    // something still is
    bool has_ended;  // a run is done that was not
  };
  Progress AdvanceAll();

 private:
  // The blocking call that makes the board: one that is used less is not worth its memory.
  static constexpr uint64_t kBoardCall = 4;

  // A schedule that calls may use again.
  struct Kept {
    uint64_t key = 0;
    Problem problem;
    std::unique_ptr<CollectiveRun> run;  // null while a call has it
    uint64_t last_use = 0;
  };

  static Channel& MakeFor(Comm& comm);
  RunFailure RunByMessages(const Problem& problem, const Binding& binding);
  std::unique_lock<std::mutex> Lock();
  void AdvanceLocked();
  void RunPatiently(CollectiveRun* run);
  Taken TakeLocked(const Problem& problem);
  Taken MakeLocked(uint64_t key, const Problem& problem);
  Kept* FindRoom();
  void GiveBackLocked(Taken taken);

  const Comm& comm_;
  std::vector<int> node_of_;  // by rank
  // Of blocking calls, of which there is one at a time.
  uint64_t entered_ = 0;
  bool may_have_board_ = false;
  std::unique_ptr<NodeBoard> board_;  // null: there is none, or none yet
  std::mutex mutex_;                  // guards what follows
  FrontMessenger messenger_;
  Runner runner_;
  std::vector<ProgramRun*> programs_;  // not done
  uint32_t next_number_ = 0;
  uint32_t next_persistent_ = 0;
  uint64_t uses_ = 0;
  std::deque<Kept> kept_;  // whose addresses stay
  Kept* last_ = nullptr;   // what the last call used
};

class Channel::Taken {
 public:
  Taken() = default;
  CollectiveRun* run() const { return run_.get(); }

 private:
  friend class Channel;
  Taken(std::unique_ptr<CollectiveRun> run, Kept* home) : run_(std::move(run)), home_(home) {}

  std::unique_ptr<CollectiveRun> run_;
  Kept* home_ = nullptr;  // null: it is not kept
};

}  // namespace ferry::mpi
