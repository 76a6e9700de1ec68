// Nonblocking collectives of a communicator by a board of their own.
//
// They are carried out one after the other, in the order of the calls, which is the same on all
// ranks. The code is that of blocking ones (coll/board): it runs on a fiber, which suspends where
// it would wait. The board is made on the fiber, too.
//
// Calling thread: one at a time. Nothing blocks but copies, while they copy.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>

#include "mpi/coll/fiber.h"
#include "mpi/coll/node_board.h"
#include "mpi/comm/comm.h"

namespace ferry::mpi {

// A call that the board carries out, or that turns out to be not for it.
struct BoardCall {
  uint64_t number = 0;
  collective::Problem* problem = nullptr;  // it, and the binding's objects, outlive the call
  collective::Binding binding;
  collective::RunFailure failure;  // once it is carried out
};

class BoardQueue {
 public:
  // The communicator, whose ranks share a node, outlives this queue. The other ranks make theirs at
  // the same call. `end` is called when a call is over, or, with another result than kDone, is to
  // be carried out in another way. `has_waiting` returns true while a thread of the program waits
  // for calls of the communicator.
  BoardQueue(const Comm& comm, std::function<void(BoardCall*, collective::BoardResult)> end,
             std::function<bool()> has_waiting);

  // Returns true if the call is to be added, false if it is to be skipped: alike on all ranks.
  bool MayTake(const collective::Problem& problem) const;
  // Adds a call, whose number is greater than those of all before.
  void Add(BoardCall* call) { queue_.push_back({call->number, call}); }
  // Skip a call that is carried out in another way, or (Renounce) not at all: ranks that wait for
  // that one here give up.
  void Skip(uint64_t number) { queue_.push_back({number}); }
  void Renounce(uint64_t number) { queue_.push_back({.number = number, .is_renounced = true}); }
  // Carries the calls on as far as they go without waiting. Returns true if any of them is over.
  bool Step();

  bool is_busy() const { return !queue_.empty(); }
  uint64_t ended() const { return ended_; }  // calls, and those skipped

 private:
  struct Entry {
    uint64_t number = 0;
    BoardCall* call = nullptr;  // null: skipped
    bool is_renounced = false;
  };

  void Work();
  void CarryOut(const Entry& entry);

  const Comm& comm_;
  const std::function<void(BoardCall*, collective::BoardResult)> end_;
  const std::function<bool()> has_waiting_;
  std::deque<Entry> queue_;  // the first has the board
  uint64_t ended_ = 0;
  bool is_set_up_ = false;
  std::unique_ptr<NodeBoard> board_;  // null, once it is set up: some rank could not
  Fiber fiber_;
};

}  // namespace ferry::mpi
