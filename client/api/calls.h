// The calls that threads of this rank are in, for `ferryctl why` and the like: front ends and
// ferry.h note each call (CallScope), and code that waits says so (Calls::NoteWait). Only then the
// call is shown, in the session (shm/layout/call_layout.h).
//
// Calling thread: any. Nothing blocks.
#pragma once

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
  uint64_t begin_ns = 0;  // of its first wait
  uint64_t number = 0;
  int32_t missing = shm::kCallNoRank;
  uint32_t missing_count = 0;
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
  // After a communicator has got another name.
  void ForgetNames() { board_.ForgetNames(); }
  // Counts a collective, or a one-sided operation, and its payload.
  void Count(shm::CallName name, uint64_t bytes) { board_.AddCall(name, bytes); }

 private:
  void NoteWaitOf(CallNote* note);
  void ShowAt(CallNote* note, uint64_t begin_ns);
  static bool Fill(const CallNote& note, shm::CallDescription* description);

  shm::CallBoard board_;
  const bool& shared_;
  const OfThread of_thread_;
  CallNote* single_ = nullptr;  // of all threads together, while one calls at a time
};

// While it exists, the thread is in that call. Calls may lie in each other.
class CallScope {
 public:
  CallScope(Calls* calls, CallNote* note)
      : calls_(*calls), note_(*note), place_(calls->current()), outer_(place_) {
    place_ = note;
  }
  ~CallScope() {
    place_ = outer_;
    if (note_.slot != CallNote::kNotShown) {
      calls_.End(&note_);
    }
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
