#include "client/mpi/channel/board_queue.h"

#include <utility>

#include "client/mpi/channel/table.h"

namespace ferry::mpi {

BoardQueue::BoardQueue(const Comm& comm, std::function<void(BoardCall*, BoardResult)> end,
                       std::function<bool()> may_spin)
    : comm_(comm),
      end_(std::move(end)),
      may_spin_(std::move(may_spin)),
      fiber_([this] { Work(); }) {}

// Until the board is there nobody knows what it can carry out: then calls wait for it.
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
  board_ = NodeBoard::SetUp(comm_, {[this] { fiber_.Suspend(); }, may_spin_});
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
