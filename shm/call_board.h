// A rank's side of what it shows of its calls (shm/layout/call_layout.h; readers: call_record.h).
//
// A record is changed by plain stores: the sequence, then the words, then the sequence. A thread
// that is killed in between leaves an odd sequence, which readers take for a change under way; the
// rank goes with it.
//
// Calling thread: any of the rank, each with a slot of its own. Nothing blocks.
#pragma once

#include <atomic>
#include <cstdint>

#include "shm/layout/call_layout.h"
#include "shm/layout/call_names.h"

namespace ferry::shm {

// A call's own account of itself. Fields that `flags` does not name are not looked at.
struct CallDescription {
  CallName name = CallName::kNone;
  CallName inner = CallName::kNone;  // of a completion call: what it waits for
  uint16_t flags = 0;                // CallFlag
  uint32_t group = 0;
  int32_t peer = kCallNoRank;  // a rank of the job, kCallNoRank or kCallAnyRank
  int32_t peer_in_group = kCallNoRank;
  int32_t tag = 0;
  uint64_t bytes = 0;
  uint64_t number = 0;
  uint64_t object = 0;
  int32_t missing = kCallNoRank;
  uint32_t missing_count = 0;
  // Writes the name of the group, or of the file, which ends with a 0 or at the end of the field.
  // Called only where the record does not have it yet. Null: it has none.
  using NameWriter = void (*)(const void* group_object, char (&name)[kCallGroupNameBytes]);
  NameWriter write_name = nullptr;
  const void* group_object = nullptr;
  const char* file = nullptr;  // its whole name; kCallHasFile
};

class CallBoard {
 public:
  // No slot was free; the thread is counted instead.
  static constexpr int kUnshown = -2;

  // `layout` outlives it.
  explicit CallBoard(CallBoardLayout* layout) : layout_(*layout) {}
  CallBoard(const CallBoard&) = delete;
  CallBoard& operator=(const CallBoard&) = delete;

  // Shows a call of a thread, which `thread` numbers, until End. `begin_ns`: 0 is not known yet.
  // `shared`: other threads may call at the same time. Returns a slot, or kUnshown.
  int Begin(const CallDescription& call, uint32_t thread, uint64_t begin_ns, bool shared);
  // Shows another call, or more of it, in the slot of one that is shown.
  void Change(int slot, const CallDescription& call, uint32_t thread, uint64_t begin_ns);
  void End(int slot, bool shared);
  // Both change a call that is shown. `slot` may be kUnshown: then nothing happens.
  void SetBegin(int slot, uint64_t begin_ns);
  void SetMissing(int slot, int32_t rank, uint32_t count);
  // Makes each next call with a group write its name anew.
  void ForgetNames();

  // Adds to the totals of a function. Threads that add at the same time may lose some.
  void AddCall(CallName name, uint64_t bytes);
  void AddWait(CallName name, uint64_t waited_ns);

 private:
  void Write(int slot, const CallDescription& call, uint32_t thread, uint64_t begin_ns);
  int TakeSlot(bool shared);
  void GiveSlot(int slot, bool shared);

  CallBoardLayout& layout_;
  std::atomic<uint32_t> taken_{0};  // a bit for each slot
  // The groups, plus 1, whose names are in the records. 0: none.
  std::atomic<uint64_t> named_[kCallSlots] = {};
};

}  // namespace ferry::shm
