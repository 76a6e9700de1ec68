// The deferred-work entries of a NIC. They limit the operations that may wait in it for their
// trigger, or be under way.
//
// Entries are one-shot. Each start of an operation asks for one. A start that finds none waits in
// line and gets the next free entry, unless its trigger comes first: then it runs in software,
// without an entry.
//
// Calling thread: one. Nothing blocks.
#pragma once

#include <cstdint>
#include <deque>

namespace ferry::sim {

class EntryPool {
 public:
  // The starts of one operation, which run in order.
  struct Slot {
    uint64_t armed = 0;    // bit n % 64: run n has an entry
    uint32_t started = 0;  // runs that were asked for
    uint32_t begun = 0;    // of these, those whose trigger came
  };
  // How many starts of an operation may be ahead of its trigger, at most.
  static constexpr uint32_t kMostAhead = 32;

  explicit EntryPool(uint32_t limit) : limit_(limit) {}

  // The next run of `slot` (which outlives it) wants an entry.
  void Start(Slot* slot);
  // The trigger of its next run has come. True: it has an entry, until End.
  bool Begin(Slot* slot);
  // A run that had an entry is over.
  void End();

  uint32_t used() const { return used_; }
  uint32_t peak() const { return peak_; }

 private:
  struct Want {
    Slot* slot;
    uint32_t run;
  };
  void Arm(const Want& want);

  const uint32_t limit_;
  uint32_t used_ = 0;
  uint32_t peak_ = 0;
  std::deque<Want> line_;
};

}  // namespace ferry::sim
