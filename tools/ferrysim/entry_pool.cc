#include "tools/ferrysim/entry_pool.h"

#include <algorithm>

namespace ferry::sim {
namespace {

uint64_t BitOf(uint32_t run) { return uint64_t{1} << run % 64; }

}  // namespace

void EntryPool::Arm(const Want& want) {
  want.slot->armed |= BitOf(want.run);
  used_++;
  peak_ = std::max(peak_, used_);
}

void EntryPool::Start(Slot* slot) {
  const Want want{slot, slot->started++};
  if (used_ < limit_ && line_.empty()) {
    Arm(want);
  } else {
    line_.push_back(want);
  }
}

bool EntryPool::Begin(Slot* slot) {
  const uint64_t bit = BitOf(slot->begun++);
  const bool armed = (slot->armed & bit) != 0;
  slot->armed &= ~bit;
  return armed;
}

void EntryPool::End() {
  used_--;
  while (!line_.empty() && used_ < limit_) {
    const Want want = line_.front();
    line_.pop_front();
    if (want.slot->begun <= want.run) {  // else it has run in software meanwhile
      Arm(want);
    }
  }
}

}  // namespace ferry::sim
