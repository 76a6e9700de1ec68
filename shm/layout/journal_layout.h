// The intent record of a lease holder: the words it is about to store.
//
// A mutation is a list of plain stores. The holder writes the list here, publishes `count`, applies
// the stores, and clears `count`. A successor that finds `count` != 0 applies the list again:
// storing the same values twice changes nothing, so a kill at any instruction leaves either the old
// state or, after recovery, the new one.
#pragma once

#include <cstdint>

#include "shm/layout/layout_check.h"

namespace ferry::shm {

inline constexpr uint32_t kJournalEntries = 62;

struct JournalEntry {
  // Bit 63: in the inbox, not the session segment; bit 62: a 64-bit word; the rest: the offset.
  uint64_t place;
  uint64_t value;
};
FERRY_ASSERT_LAYOUT(JournalEntry, 16);

struct alignas(128) JournalLayout {
  uint32_t count;  // entries to apply; 0 = nothing pending
  uint32_t reserved0;
  uint64_t recoveries;  // times a successor rolled forward (statistics)
  uint64_t reserved1[2];
  JournalEntry entries[kJournalEntries];
};
FERRY_ASSERT_LAYOUT(JournalLayout, 1024);
FERRY_ASSERT_OFFSET(JournalLayout, count, 0);
FERRY_ASSERT_OFFSET(JournalLayout, recoveries, 8);
FERRY_ASSERT_OFFSET(JournalLayout, entries, 32);

}  // namespace ferry::shm
