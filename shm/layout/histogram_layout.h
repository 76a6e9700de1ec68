// How large a rank's messages are and how long its calls wait, as counts by powers of two: for the
// metrics and the record of its job. Written by the rank, read by its ferryd (shm/histograms.h).
//
// They lie behind the calls, in the rest of the session's last fixed page. A rank that knows
// nothing of them leaves zeros there, which say that nothing was counted.
#pragma once

#include <cstddef>
#include <cstdint>

#include "shm/layout/call_layout.h"
#include "shm/layout/layout_check.h"
#include "shm/layout/session_layout.h"

namespace ferry::shm {

// Entry i counts messages of more than 2^i and at most 2^(i+1) bytes; the first those of 1 byte,
// too; the last empty ones.
inline constexpr uint32_t kSizeCounts = 64;
inline constexpr uint32_t kEmptyMessages = kSizeCounts - 1;
// Entry i counts waits of at most 2 us * 2^i that are in no entry before it; the last all longer
// ones.
inline constexpr uint32_t kWaitCounts = 23;
inline constexpr uint64_t kShortestWaitNs = 2000;
// Functions whose waits are told apart; those of all others are in the last line.
inline constexpr uint32_t kWaitLines = 12;

// Threads that wait at the same time may lose a count.
struct WaitLineLayout {
  uint64_t name;  // CallName; 0: no function has the line. Never changes once it is set.
  uint64_t waited_ns;
  uint64_t counts[kWaitCounts];
};
FERRY_ASSERT_LAYOUT(WaitLineLayout, 200);
FERRY_ASSERT_OFFSET(WaitLineLayout, waited_ns, 8);
FERRY_ASSERT_OFFSET(WaitLineLayout, counts, 16);

struct alignas(128) HistogramLayout {
  uint64_t sizes[kSizeCounts];  // written by the lease holder
  WaitLineLayout waits[kWaitLines];
  uint64_t reserved[4];
};
FERRY_ASSERT_LAYOUT(HistogramLayout, 2944);
FERRY_ASSERT_OFFSET(HistogramLayout, waits, 512);

inline constexpr size_t kHistogramOffset = offsetof(SessionLayout, calls) + sizeof(CallBoardLayout);
static_assert(kHistogramOffset % alignof(HistogramLayout) == 0);
static_assert(kHistogramOffset + sizeof(HistogramLayout) <= sizeof(SessionLayout),
              "the page behind SessionLayout::calls is full: bump kLayoutVersion");

inline HistogramLayout& HistogramsOf(SessionLayout& session) {
  return *reinterpret_cast<HistogramLayout*>(reinterpret_cast<std::byte*>(&session) +
                                             kHistogramOffset);
}
inline const HistogramLayout& HistogramsOf(const SessionLayout& session) {
  return *reinterpret_cast<const HistogramLayout*>(reinterpret_cast<const std::byte*>(&session) +
                                                   kHistogramOffset);
}

}  // namespace ferry::shm
