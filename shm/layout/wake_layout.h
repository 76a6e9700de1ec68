// The words of a rank that arrivals and completions touch: the wake word, the number of sleepers,
// and the lanes that hold messages. On a node of up to 448 ranks that is one cache line.
#pragma once

#include <cstdint>

#include "shm/layout/layout_check.h"

namespace ferry::shm {

// Ranks of one job on one node: each has a bit in WakeLayout::activity of all others.
inline constexpr uint32_t kMaxLocalRanks = 1024;
inline constexpr uint32_t kActivityWords = 17;  // of these ranks, and of the lanes of others
inline constexpr uint32_t kMaxLanes = kActivityWords * 64;

// A thread sleeps on `sequence` (a futex word shared between processes). A publisher stores its
// message, sets the activity bit if that is clear, and reads `sleepers`; only if a thread sleeps
// does it bump `sequence`. A sleeper adds itself to `sleepers` and then looks for work once more.
// Fences between the two steps of each side make sure that one of them sees the other (shm/wake.h).
struct alignas(128) WakeLayout {
  // Written by publishers.
  uint32_t sequence;                  // bumped to wake sleepers
  uint32_t sleepers;                  // threads asleep, or about to be
  uint64_t activity[kActivityWords];  // bit i: lane i may hold a message
  uint64_t reserved0[14];
  // Written and polled by the rank's own threads; publishers touch them for urgent work only.
  uint32_t inside;       // threads of the rank inside a blocking call: 0 = the rank computes
  uint32_t urgent;       // 1: urgent work was published since a thread last left
  uint32_t death_epoch;  // bumped after a rank was marked as gone in SessionLayout::peers
  int32_t poison;        // ErrorCode: once set, all calls of this rank fail with it
  // One-sided operations: a thread that waits for a change of the rank's memory looks at `changes`
  // before it sleeps, and no other sleeper is woken for one.
  uint32_t resting;  // threads that wait so
  uint32_t changes;  // grows after each change to be announced (wraps)
  uint64_t reserved1[13];
};
FERRY_ASSERT_LAYOUT(WakeLayout, 384);
FERRY_ASSERT_OFFSET(WakeLayout, sequence, 0);
FERRY_ASSERT_OFFSET(WakeLayout, sleepers, 4);
FERRY_ASSERT_OFFSET(WakeLayout, activity, 8);
FERRY_ASSERT_OFFSET(WakeLayout, inside, 256);
FERRY_ASSERT_OFFSET(WakeLayout, urgent, 260);
FERRY_ASSERT_OFFSET(WakeLayout, death_epoch, 264);
FERRY_ASSERT_OFFSET(WakeLayout, poison, 268);
FERRY_ASSERT_OFFSET(WakeLayout, resting, 272);
FERRY_ASSERT_OFFSET(WakeLayout, changes, 276);

}  // namespace ferry::shm
