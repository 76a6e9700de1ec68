#include "mpi/coll/board_queue.h"

#include <utility>

#include "mpi/coll/helper.h"
#include "mpi/coll/table.h"

namespace ferry::mpi {

using collective::BoardResult;
using collective::Problem;

BoardQueue::BoardQueue(const Comm& comm, std::function<void(BoardCall*, BoardResult)> end,
                       std::function<bool()> has_waiting)
    : comm_(comm),
      end_(std::move(end)),
      has_waiting_(std::move(has_waiting)),
      fiber_([this] { Work(); }) {}

// Until the board is there, its abilities are unknown: then calls wait for it.
bool BoardQueue::MayTake(const Problem& problem) const {
  return !is_set_up_ ||
         (board_ != nullptr && CollectiveTable().LeavesToBoard(problem) && board_->CanRun(problem));
}

bool BoardQueue::Step() {
  if (!is_busy()) {
    return false;
  }
  const uint64_t ended = ended_;
  fiber_.Resume();
  return ended_ != ended;
}

// The fiber's.
void BoardQueue::Work() {
  // A thread that begins to wait, or the helper when it does, looks before it sleeps.
  board_ =
      NodeBoard::SetUp(comm_, {.pause = [this] { fiber_.Suspend(); },
                               .may_spin = has_waiting_,
                               .is_awake = [this] { return !has_waiting_() && !HelperWaits(); }});
  is_set_up_ = true;
  for (;;) {
    while (is_busy()) {
      const Entry entry = queue_.front();
      CarryOut(entry);
      queue_.pop_front();
      ended_++;
    }
    fiber_.Suspend();
  }
}

void BoardQueue::CarryOut(const Entry& entry) {
  if (entry.call == nullptr) {
    if (board_ != nullptr) {
      entry.is_renounced ? board_->board().Renounce(entry.number)
                         : board_->board().Skip(entry.number);
    }
    return;
  }
  BoardCall& call = *entry.call;
  BoardResult result = BoardResult::kNotForBoards;
  if (MayTake(*call.problem)) {
    result = board_->Run(entry.number, *call.problem, call.binding, &call.failure);
  } else if (board_ != nullptr) {
    board_->board().Skip(entry.number);
  }
  end_(&call, result);
}

}  // namespace ferry::mpi
