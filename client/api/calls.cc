#include "client/api/calls.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstddef>

#include "client/api/quick_clock.h"
#include "common/clock.h"
#include "shm/call_record.h"

namespace ferry::client {
namespace {

uint32_t ThreadId() {
  thread_local const auto id = static_cast<uint32_t>(gettid());
  return id;
}

// An entry is the literal's address above the number of its line, both in one word: addresses of
// programs have 48 bits.
constexpr size_t kEntries = 1024;
constexpr int kNameBits = 16;
constinit std::atomic<uint64_t> found_before[kEntries] = {};

}  // namespace

shm::CallName CallOf(const char* function) {
  const auto address = reinterpret_cast<uintptr_t>(function);
  std::atomic<uint64_t>& entry = found_before[(address ^ address >> 10) % kEntries];
  const uint64_t found = entry.load(std::memory_order_relaxed);
  if (found >> kNameBits == address) {
    return static_cast<shm::CallName>(found & ((uint64_t{1} << kNameBits) - 1));
  }
  const shm::CallName name = shm::CallNamed(function);
  if (address >> (64 - kNameBits) == 0) {
    entry.store(static_cast<uint64_t>(address) << kNameBits | static_cast<uint64_t>(name),
                std::memory_order_relaxed);
  }
  return name;
}

// ---- Calls --------------------------------------------------------------------------------------

// False: a function without a line, of which there is nothing to show.
bool Calls::Fill(const CallNote& note, shm::CallDescription* description) {
  note.describe(note, description);
  if (note.has_number) {
    description->number = note.number;
    description->flags |= shm::kCallHasNumber;
  }
  description->missing = note.missing;
  description->missing_count = note.missing_count;
  return description->name != shm::CallName::kNone;
}

void Calls::ShowAt(CallNote* note, uint64_t begin_ns) {
  shm::CallDescription description;
  if (Fill(*note, &description)) {
    note->name = description.name;
    note->begin_ns = begin_ns;
    note->slot = board_.Begin(description, ThreadId(), begin_ns, shared_);
  }
}

void Calls::NoteWaitOf(CallNote* note) {
  const uint64_t now_ns = MonotonicNs();
  if (note->slot == CallNote::kNotShown) {
    ShowAt(note, now_ns);
  } else {
    board_.SetBegin(note->slot, now_ns);
  }
  note->begin_ns = now_ns;
  for (CallWatcher* one = watcher_.load(std::memory_order_acquire); one != nullptr;
       one = one->next) {
    one->WaitBegan(note);
  }
}

// Both pair with SetWatcher: the watcher has been made.
void Calls::TellBegin(CallNote* note, bool inner) {
  note->entered_ns = QuickMonotonicNs();
  for (CallWatcher* one = watcher_.load(std::memory_order_acquire); one != nullptr;
       one = one->next) {
    one->Begin(note, inner);
  }
}

void Calls::TellEnd(CallNote* note, bool inner) {
  for (CallWatcher* one = watcher_.load(std::memory_order_acquire); one != nullptr;
       one = one->next) {
    one->End(note, inner);
  }
}

void Calls::NoteMissing(int32_t rank, uint32_t count) {
  CallNote* const note = current();
  if (note == nullptr || (note->missing == rank && note->missing_count == count)) {
    return;
  }
  note->missing = rank;
  note->missing_count = count;
  if (note->slot != CallNote::kNotShown) {
    board_.SetMissing(note->slot, rank, count);
  }
}

void Calls::NoteNumber(uint64_t number) {
  if (CallNote* const note = current(); note != nullptr) {
    note->number = number;
    note->has_number = true;
    NoteChange();
  }
}

void Calls::NoteChange() {
  CallNote* const note = current();
  if (note == nullptr || note->slot == CallNote::kNotShown) {
    return;
  }
  shm::CallDescription description;
  if (Fill(*note, &description)) {
    board_.Change(note->slot, description, ThreadId(), note->begin_ns);
  }
}

void Calls::End(CallNote* note) {
  if (note->slot == CallNote::kNotShown) {
    return;
  }
  board_.End(note->slot, shared_);
  note->slot = CallNote::kNotShown;
  if (note->begin_ns != 0) {
    board_.AddWait(note->name, MonotonicNs() - note->begin_ns);
    note->begin_ns = 0;
  }
}

// ---- Named calls --------------------------------------------------------------------------------

NamedCall::NamedCall(const char* function) : CallNote(&DescribeIt), text(function) {}

NamedCall::NamedCall(shm::CallName function) : CallNote(&DescribeIt), function(function) {}

void NamedCall::DescribeIt(const CallNote& note, shm::CallDescription* description) {
  const auto& call = static_cast<const NamedCall&>(note);
  description->name = call.text != nullptr ? CallOf(call.text) : call.function;
}

}  // namespace ferry::client
