// What the library's thread carries on while the program leaves it alone (helper.h).
//
// Calling thread: that one, but for what an implementation says. Nothing blocks.
#pragma once

namespace ferry::mpi {

class Watched {
 public:
  // Whether something is under way.
  virtual bool IsBusy() = 0;
  // Whether the program has carried it on by itself, since the last question.
  virtual bool IsLookedAfter() = 0;
  // Does what can be done without waiting.
  struct Progress {
    bool is_busy = false;    // something is under way still
    bool has_ended = false;  // something is over that was not: threads may wait for just that
  };
  virtual Progress AdvanceAll() = 0;
  // At the end, when nobody advances it any more.
  virtual void Abandon() = 0;
  // Whether NodePeers::WaitFor hears of what it waits for; else it is looked at now and then.
  virtual bool IsAnnounced() const { return true; }

 protected:
  ~Watched() = default;
};

}  // namespace ferry::mpi
