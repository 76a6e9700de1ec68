// The first 128 bytes of every memfd that Ferry shares.
//
// A process that maps a segment learns its kind before it trusts any other word in it. The creator
// fills everything, then stores `layout_version` last with release; a mapper loads it first with
// acquire: 0 means "not ready yet". `magic` and `layout_version` never move.
#pragma once

#include <cstdint>

#include "shm/layout/layout_check.h"

namespace ferry::shm {

inline constexpr uint64_t kSegmentMagic = 0x5952'5245'4630'3031ULL;  // "100FERRY" in memory order

enum class SegmentKind : uint32_t {
  kNone = 0,
  kSession = 1,  // a rank's private state: requests, match table; mapped by rank and its daemon
  kInbox = 2,  // a rank's lanes and transfers; mapped by the rank, its node's peers and the daemon
  kHeap = 3,   // user memory (no header inside; listed here so that ids never clash)
};

struct alignas(128) SegmentHeader {
  uint64_t magic;
  uint32_t layout_version;  // stored last
  uint32_t kind;            // SegmentKind
  uint64_t size_bytes;      // of the whole segment
  uint32_t creator_pid;
  uint32_t rank;
  uint32_t job_size;
  uint32_t local_size;
  uint32_t request_limit;  // slots in RequestLayout and TransferLayout pools
  uint32_t unexpected_limit;
  uint64_t reserved[10];
};
FERRY_ASSERT_LAYOUT(SegmentHeader, 128);
FERRY_ASSERT_OFFSET(SegmentHeader, magic, 0);
FERRY_ASSERT_OFFSET(SegmentHeader, layout_version, 8);
FERRY_ASSERT_OFFSET(SegmentHeader, kind, 12);
FERRY_ASSERT_OFFSET(SegmentHeader, size_bytes, 16);
FERRY_ASSERT_OFFSET(SegmentHeader, creator_pid, 24);
FERRY_ASSERT_OFFSET(SegmentHeader, rank, 28);
FERRY_ASSERT_OFFSET(SegmentHeader, job_size, 32);
FERRY_ASSERT_OFFSET(SegmentHeader, local_size, 36);
FERRY_ASSERT_OFFSET(SegmentHeader, request_limit, 40);
FERRY_ASSERT_OFFSET(SegmentHeader, unexpected_limit, 44);

}  // namespace ferry::shm
