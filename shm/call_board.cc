#include "shm/call_board.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "shm/atomic.h"
#include "shm/histograms.h"

namespace ferry::shm {
namespace {

constexpr size_t kWord = sizeof(uint64_t);
constexpr size_t kFirstWord = offsetof(CallRecordLayout, generation) / kWord;
constexpr size_t kNameWord = offsetof(CallRecordLayout, group_name) / kWord;
constexpr size_t kWords = kNameWord + kCallGroupNameBytes / kWord;
constexpr size_t kHeadWord = offsetof(CallRecordLayout, name) / kWord;
constexpr size_t kMissingWord = offsetof(CallRecordLayout, missing) / kWord;
static_assert(kCallGroupNameBytes % kWord == 0 &&
              kNameWord * kWord == offsetof(CallRecordLayout, group_name));

uint64_t* WordsOf(CallRecordLayout& record) { return reinterpret_cast<uint64_t*>(&record); }

CallRecordLayout Fill(const CallDescription& call, uint32_t thread, uint64_t begin_ns) {
  CallRecordLayout made{};
  made.begin_ns = begin_ns;
  made.name = static_cast<uint16_t>(call.name);
  made.inner = static_cast<uint16_t>(call.inner);
  made.flags = call.flags;
  made.thread = thread;
  made.group = call.group;
  made.peer = call.peer;
  made.peer_in_group = call.peer_in_group;
  made.tag = call.tag;
  made.bytes = call.bytes;
  made.number = call.number;
  made.object = call.object;
  made.missing = call.missing;
  made.missing_count = call.missing_count;
  return made;
}

// For one writer at a time; readers are other processes.
void Add(uint64_t& word, uint64_t value) { StoreRelaxed(word, LoadRelaxed(word) + value); }

}  // namespace

// ---- Slots --------------------------------------------------------------------------------------

int CallBoard::TakeSlot(bool shared) {
  uint32_t taken = taken_.load(std::memory_order_relaxed);
  for (;;) {
    const int slot = __builtin_ctz(~taken);
    if (slot >= static_cast<int>(kCallSlots)) {
      FetchAdd(layout_.unshown, 1U, std::memory_order_relaxed);
      return kUnshown;
    }
    const uint32_t wanted = taken | uint32_t{1} << slot;
    if (!shared) {
      taken_.store(wanted, std::memory_order_relaxed);
      return slot;
    }
    // Pairs with GiveSlot: what the slot's last thread wrote to its record comes first.
    if (taken_.compare_exchange_weak(taken, wanted, std::memory_order_acquire,
                                     std::memory_order_relaxed)) {
      return slot;
    }
  }
}

void CallBoard::GiveSlot(int slot, bool shared) {
  const uint32_t others = ~(uint32_t{1} << slot);
  if (shared) {
    taken_.fetch_and(others, std::memory_order_release);  // pairs with TakeSlot
  } else {
    taken_.store(taken_.load(std::memory_order_relaxed) & others, std::memory_order_relaxed);
  }
}

// ---- Records ------------------------------------------------------------------------------------

int CallBoard::Begin(const CallDescription& call, uint32_t thread, uint64_t begin_ns, bool shared) {
  const int slot = TakeSlot(shared);
  Change(slot, call, thread, begin_ns);
  return slot;
}

void CallBoard::Change(int slot, const CallDescription& call, uint32_t thread, uint64_t begin_ns) {
  if (slot != kUnshown) {
    Write(slot, call, thread, begin_ns);
  }
}

void CallBoard::Write(int slot, const CallDescription& call, uint32_t thread, uint64_t begin_ns) {
  CallRecordLayout& record = layout_.slots[slot];
  CallRecordLayout made = Fill(call, thread, begin_ns);
  made.generation = LoadRelaxed(record.generation) + 1;
  std::atomic<uint64_t>& named = named_[slot];
  const uint64_t group = uint64_t{call.group} + 1;
  const bool is_file = (call.flags & kCallHasFile) != 0;
  const bool is_to_name = is_file || ((call.flags & kCallHasGroup) != 0 &&
                                      named.load(std::memory_order_relaxed) != group);
  if (is_to_name) {
    // First: ForgetNames may come meanwhile. A file's name is no group's.
    named.store(is_file ? 0 : group, std::memory_order_relaxed);
    if (call.write_name != nullptr) {
      call.write_name(call.group_object, made.group_name);
    }
  }
  uint64_t words[sizeof(CallRecordLayout) / kWord];
  std::memcpy(words, &made, sizeof(words));
  uint64_t* const to = WordsOf(record);
  const uint64_t sequence = LoadRelaxed(record.sequence) | 1;
  StoreRelaxed(record.sequence, sequence);
  const size_t end = is_to_name ? kWords : kNameWord;
  for (size_t i = kFirstWord; i < end; ++i) {
    StoreRelease(to[i], words[i]);  // pairs with ReadCall, which sees the odd sequence after it
  }
  StoreRelease(record.sequence, sequence + 1);  // pairs with ReadCall
}

void CallBoard::End(int slot, bool shared) {
  if (slot == kUnshown) {
    FetchAdd(layout_.unshown, ~uint32_t{0}, std::memory_order_relaxed);
    return;
  }
  StoreRelease(WordsOf(layout_.slots[slot])[kHeadWord], 0);  // as SetBegin
  GiveSlot(slot, shared);
}

// Pairs with ReadCall, as the words of Write do: a reader that sees the word sees the sequence of
// the call that it belongs to, so no view has it among words of the call before.
void CallBoard::SetBegin(int slot, uint64_t begin_ns) {
  if (slot != kUnshown) {
    StoreRelease(layout_.slots[slot].begin_ns, begin_ns);
  }
}

void CallBoard::SetMissing(int slot, int32_t rank, uint32_t count) {
  if (slot != kUnshown) {
    const uint64_t both = uint64_t{count} << 32 | static_cast<uint32_t>(rank);
    StoreRelease(WordsOf(layout_.slots[slot])[kMissingWord], both);  // as SetBegin
  }
}

void CallBoard::ForgetNames() {
  for (std::atomic<uint64_t>& named : named_) {
    named.store(0, std::memory_order_relaxed);
  }
}

// ---- Totals -------------------------------------------------------------------------------------

void CallBoard::AddCall(CallName name, uint64_t bytes) {
  CallTotals& totals = layout_.totals[static_cast<uint16_t>(name)];
  Add(totals.calls, 1);
  Add(totals.bytes, bytes);
}

void CallBoard::AddWait(CallName name, uint64_t waited_ns) {
  CallTotals& totals = layout_.totals[static_cast<uint16_t>(name)];
  Add(totals.waits, 1);
  Add(totals.waited_ns, waited_ns);
  if (HistogramLayout* const histograms = HistogramsBehind(layout_); histograms != nullptr) {
    CountWait(*histograms, name, waited_ns);
  }
}

}  // namespace ferry::shm
