// The calls that threads of this rank are in, for `ferryctl why` and the like: front ends and
// ferry.h note each call (CallScope), and code that waits says so (Calls::NoteWait). Only then the
// call is shown, in the session (shm/layout/call_layout.h).
//
// Calling thread: any. Nothing blocks.
#pragma once

#include <atomic>
#include <cstdint>

#include "shm/call_board.h"

namespace ferry::client {

// A call of a thread: lies on its stack, in the object that knows the call's arguments, which
// derives from it.
struct CallNote {
  using Describe = void (*)(const CallNote& note, shm::CallDescription* description);
  static constexpr int kNotShown = -1;

  explicit CallNote(Describe describe) : describe(describe) {}
  CallNote(const CallNote&) = delete;
  CallNote& operator=(const CallNote&) = delete;

  const Describe describe;
  int slot = kNotShown;
  shm::CallName name = shm::CallName::kNone;  // once it is shown
  bool has_number = false;
  uint64_t begin_ns = 0;    // of its first wait
  uint64_t entered_ns = 0;  // when the thread came into it; 0: there was no CallWatcher
  uint64_t number = 0;
  int32_t missing = shm::kCallNoRank;
  uint32_t missing_count = 0;
};

// Hears of every call of a rank: of measured ranks, and where a tool of MPI asks for that.
//
// Calling thread: any that calls; several at a time where threads are allowed. Must not block.
class CallWatcher {
 public:
  // `note` has its `entered_ns` only; `inner`: it lies in another call of the thread.
  virtual void Begin(CallNote* note, bool inner) = 0;
  // The call has looked in vain for a while, and waits since `begin_ns`.
  virtual void WaitBegan(CallNote* note) = 0;
  // The call is over; `begin_ns` is 0 if it has never waited. `describe` tells the function, and
  // what else is still there to be told. Not called for calls that the end of the connection cuts
  // off. May come without a Begin (`entered_ns` 0).
  virtual void End(CallNote* note, bool inner) = 0;

  CallWatcher* next = nullptr;  // hears of them as well

 protected:
  ~CallWatcher() = default;
};

class Calls {
 public:
  // Shorter calls take less time than showing them would, and are shown once they wait.
  static constexpr uint64_t kShownFromBeginningBytes = 8192;

  using OfThread = CallNote** (*)();
  // `shared`: whether several threads may call; it changes only while none does. `of_thread`
  // returns the calling thread's own pointer. Both, and the layout, outlive it.
  Calls(shm::CallBoardLayout* layout, const bool* shared, OfThread of_thread)
      : board_(layout), shared_(*shared), of_thread_(of_thread) {}

  // The innermost call of the calling thread; null: it is in none.
  CallNote*& current() { return shared_ ? *of_thread_() : single_; }

  // Shows the calling thread's call, which has looked in vain for a while, if it is not shown yet;
  // the first time notes the time. To be called once a wait has gone on past its first looks.
  void NoteWait() {
    if (CallNote* const note = current(); note != nullptr && note->begin_ns == 0) {
      NoteWaitOf(note);
    }
  }
  // Shows a call from its beginning on if its payload is of at least kShownFromBeginningBytes.
  void ShowIfLong(CallNote* note, uint64_t bytes) {
    if (bytes >= kShownFromBeginningBytes && note->slot == CallNote::kNotShown) {
      ShowAt(note, 0);
    }
  }
  // Say more of the calling thread's call: for whom it waits (CallRecordLayout::missing), the
  // number of the collective that it has come to, that it waits for something else than before.
  void NoteMissing(int32_t rank, uint32_t count);
  void NoteNumber(uint64_t number);
  void NoteChange();
  void End(CallNote* note);

  // The watcher that hears of each call; null: none. One that is set has the one before as its
  // `next`, and lives until no thread is in a call that began while it was set.
  CallWatcher* watcher() const { return watcher_.load(std::memory_order_relaxed); }
  void SetWatcher(CallWatcher* watcher) { watcher_.store(watcher, std::memory_order_release); }
  // A thread comes into a call, whose place among the thread's calls is set already, and leaves it.
  // `outer`: the call that it lies in; null: none.
  void Enter(CallNote* note, const CallNote* outer) {
    if (watcher() != nullptr) [[unlikely]] {
      TellBegin(note, outer != nullptr);
    }
  }
  void Leave(CallNote* note, const CallNote* outer) {
    if (watcher() != nullptr) [[unlikely]] {
      TellEnd(note, outer != nullptr);
    }
    if (note->slot != CallNote::kNotShown) {
      End(note);
    }
  }

  // After a communicator has got another name.
  void ForgetNames() { board_.ForgetNames(); }
  // Counts a collective, or a one-sided operation, and its payload.
  void Count(shm::CallName name, uint64_t bytes) { board_.AddCall(name, bytes); }

 private:
  void NoteWaitOf(CallNote* note);
  void TellBegin(CallNote* note, bool inner);
  void TellEnd(CallNote* note, bool inner);
  void ShowAt(CallNote* note, uint64_t begin_ns);
  static bool Fill(const CallNote& note, shm::CallDescription* description);

  shm::CallBoard board_;
  const bool& shared_;
  const OfThread of_thread_;
  CallNote* single_ = nullptr;  // of all threads together, while one calls at a time
  std::atomic<CallWatcher*> watcher_{nullptr};
};

// While it exists, the thread is in that call. Calls may lie in each other.
class CallScope {
 public:
  CallScope(Calls* calls, CallNote* note)
      : calls_(*calls), note_(*note), place_(calls->current()), outer_(place_) {
    place_ = note;
    calls_.Enter(note, outer_);
  }
  ~CallScope() {
    place_ = outer_;
    calls_.Leave(&note_, outer_);
  }
  CallScope(const CallScope&) = delete;
  CallScope& operator=(const CallScope&) = delete;

 private:
  Calls& calls_;
  CallNote& note_;
  CallNote*& place_;
  CallNote* const outer_;
};

// A call of which only its function is known.
struct NamedCall : CallNote {
  explicit NamedCall(const char* function);
  explicit NamedCall(shm::CallName function);

  const char* const text = nullptr;
  const shm::CallName function = shm::CallName::kNone;

 private:
  static void DescribeIt(const CallNote& note, shm::CallDescription* description);
};

// shm::CallNamed for names that are literals, each of which is looked up once.
shm::CallName CallOf(const char* function);

}  // namespace ferry::client
