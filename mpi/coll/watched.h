// Operations that the library's thread carries on while the program does not (helper.h).
//
// Calling thread: that one, unless an implementation says otherwise. Nothing blocks.
#pragma once

namespace ferry::mpi {

class Watched {
 public:
  // Returns true if an operation is under way.
  virtual bool IsBusy() = 0;
  // Returns true if the program has carried the operations on by itself since the last question.
  // Of operations that are not announced: if a thread of the program does so now, and looks again
  // at once.
  virtual bool IsLookedAfter() = 0;
  // Carries the operations on as far as they go without waiting.
  struct Progress {
    bool is_busy = false;    // an operation is still under way
    bool has_ended = false;  // an operation has ended: threads may wait for just that one
  };
  virtual Progress AdvanceAll() = 0;
  // Gives the operations up, at the end, when no thread carries them on any more.
  virtual void Abandon() = 0;
  // Returns true if NodePeers::WaitFor is woken by the events that the operations wait for; else
  // the thread looks at them now and then.
  virtual bool IsAnnounced() const { return true; }

 protected:
  ~Watched() = default;
};

}  // namespace ferry::mpi
