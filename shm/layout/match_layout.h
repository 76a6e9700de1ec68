// The match table: posted receives and unexpected messages of one rank, hashed and pointer-free.
//
// Entries come from one pool and are linked by index (0 = none, so entry 0 is never used). Posted
// entries are chained in one bucket, by their exact pattern (wildcards included as values).
// Unexpected entries are chained four times, once per pattern that a receive could name them by.
// Each chain is in order of arrival or posting; a bucket stores first and last.
#pragma once

#include <cstdint>

#include "shm/layout/descriptor.h"
#include "shm/layout/layout_check.h"

namespace ferry::shm {

inline constexpr int32_t kAnySource = -1;
inline constexpr int32_t kAnyTag = -1;
inline constexpr uint32_t kMatchBuckets = 1024;  // power of two, per chain kind
inline constexpr uint32_t kPatternKinds = 4;     // exact; any source; any tag; both

enum class MatchState : uint32_t { kFree = 0, kPosted = 1, kUnexpected = 2 };

struct alignas(128) MatchEntry {
  uint32_t state;  // MatchState
  uint32_t context;
  int32_t source;                // a posted entry may hold kAnySource
  int32_t tag;                   // a posted entry may hold kAnyTag
  uint64_t sequence;             // order of posting, or of arrival
  uint32_t next[kPatternKinds];  // posted entries use [0] only; free entries chain by next[0]
  uint32_t previous[kPatternKinds];
  uint32_t request;  // posted: the receive request
  // Unexpected: the descriptor as it came, and the lane it came by.
  uint32_t lane;
  uint64_t size_bytes;
  uint8_t kind;
  uint8_t flags;
  uint16_t cell;
  uint32_t reserved;
  uint8_t payload[kInlineBytes];
};
FERRY_ASSERT_LAYOUT(MatchEntry, 128);
FERRY_ASSERT_OFFSET(MatchEntry, state, 0);
FERRY_ASSERT_OFFSET(MatchEntry, context, 4);
FERRY_ASSERT_OFFSET(MatchEntry, source, 8);
FERRY_ASSERT_OFFSET(MatchEntry, tag, 12);
FERRY_ASSERT_OFFSET(MatchEntry, sequence, 16);
FERRY_ASSERT_OFFSET(MatchEntry, next, 24);
FERRY_ASSERT_OFFSET(MatchEntry, previous, 40);
FERRY_ASSERT_OFFSET(MatchEntry, request, 56);
FERRY_ASSERT_OFFSET(MatchEntry, lane, 60);
FERRY_ASSERT_OFFSET(MatchEntry, size_bytes, 64);
FERRY_ASSERT_OFFSET(MatchEntry, kind, 72);
FERRY_ASSERT_OFFSET(MatchEntry, flags, 73);
FERRY_ASSERT_OFFSET(MatchEntry, cell, 74);
FERRY_ASSERT_OFFSET(MatchEntry, reserved, 76);
FERRY_ASSERT_OFFSET(MatchEntry, payload, 80);

struct MatchBucket {
  uint32_t first;
  uint32_t last;
};
FERRY_ASSERT_LAYOUT(MatchBucket, 8);

// Followed in memory by MatchEntry[capacity].
struct alignas(4096) MatchTableLayout {
  uint32_t capacity;    // entries in the pool, entry 0 (unused) included
  uint32_t free_first;  // chain of entries given back
  uint32_t fresh;       // entries [fresh, capacity) were never used: their pages are untouched
  uint32_t posted_count;
  uint32_t unexpected_count;
  uint32_t posted_kind_count[kPatternKinds];
  uint32_t reserved0;
  uint64_t next_sequence;
  uint64_t reserved[10];
  MatchBucket posted[kMatchBuckets];
  MatchBucket unexpected[kPatternKinds][kMatchBuckets];
};
FERRY_ASSERT_LAYOUT(MatchTableLayout, 45056);
FERRY_ASSERT_OFFSET(MatchTableLayout, capacity, 0);
FERRY_ASSERT_OFFSET(MatchTableLayout, free_first, 4);
FERRY_ASSERT_OFFSET(MatchTableLayout, fresh, 8);
FERRY_ASSERT_OFFSET(MatchTableLayout, posted_count, 12);
FERRY_ASSERT_OFFSET(MatchTableLayout, unexpected_count, 16);
FERRY_ASSERT_OFFSET(MatchTableLayout, posted_kind_count, 20);
FERRY_ASSERT_OFFSET(MatchTableLayout, next_sequence, 40);
FERRY_ASSERT_OFFSET(MatchTableLayout, posted, 128);
FERRY_ASSERT_OFFSET(MatchTableLayout, unexpected, 8320);

}  // namespace ferry::shm
