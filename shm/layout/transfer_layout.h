// A large message on its way: its source, its destination, and the claims on its chunks.
//
// Same node: the slot lies in the sender's inbox at the index of its send request. The sender
// writes the source, the receiver writes the destination when it has matched; then sender, receiver
// and progress worker claim chunks. Other node: the slot lies in the receiver's inbox at the index
// of its receive request and is read by the daemon.
#pragma once

#include <cstdint>

#include "shm/layout/descriptor.h"
#include "shm/layout/layout_check.h"

namespace ferry::shm {

enum class TransferState : uint32_t {
  kIdle = 0,
  kAnnounced = 1,  // the source is valid; a descriptor announces it
  kMatched = 2,    // the destination is valid: chunks may be claimed
  kDone = 3,       // every chunk has been copied (or `error` says why not)
  kReleased = 4,   // after an error: the receiver has seen it, the owner may use the slot anew
};

inline constexpr uint64_t kOutOfReachOfSource = 1;
inline constexpr uint64_t kOutOfReachOfDestination = 2;

struct alignas(128) TransferLayout {
  // Line 0: the message to move. Written before `state` is published, then constant.
  uint32_t state;  // TransferState
  uint32_t generation;
  Location source;
  Location destination;
  uint64_t size_bytes;  // bytes to move (already cut to the receiver's capacity)
  uint32_t chunk_bytes;
  uint32_t source_rank;
  // Line 1: contended while chunks are claimed. `claim` is the generation in the upper half and, 16
  // bits each, how many chunks are claimed from the last on and from the first on: a claimant that
  // was stopped since an earlier life of the slot fails its compare-and-swap instead of claiming a
  // chunk of another message.
  alignas(64) uint64_t claim;
  uint32_t done_chunks;
  int32_t error;  // first ErrorCode met
  // Other node only: the words that the remote source needs.
  uint64_t remote_key;
  uint32_t remote_request;
  uint32_t remote_generation;
  uint32_t remote_flags;  // Descriptor flags of the kRemoteRts
  uint32_t destination_rank;
  // Same node only: the generation in the upper half; in the lower the ends that have found that
  // they will never reach the other's memory (kOutOfReachOf...). With both, the message is never
  // moved.
  uint64_t out_of_reach;
  Location moved_source;  // the copy that replaces `source`, where the sender has gone on
};
inline constexpr uint64_t kClaimFromTheLast = 1 << 16;
// Returns how many chunks are claimed; more than any message has where none may be claimed.
constexpr uint32_t ClaimedChunks(uint64_t claim) {
  return static_cast<uint32_t>((claim & 0xffff) + (claim >> 16 & 0xffff));
}
FERRY_ASSERT_LAYOUT(TransferLayout, 128);
FERRY_ASSERT_OFFSET(TransferLayout, state, 0);
FERRY_ASSERT_OFFSET(TransferLayout, generation, 4);
FERRY_ASSERT_OFFSET(TransferLayout, source, 8);
FERRY_ASSERT_OFFSET(TransferLayout, destination, 24);
FERRY_ASSERT_OFFSET(TransferLayout, size_bytes, 40);
FERRY_ASSERT_OFFSET(TransferLayout, chunk_bytes, 48);
FERRY_ASSERT_OFFSET(TransferLayout, source_rank, 52);
FERRY_ASSERT_OFFSET(TransferLayout, claim, 64);
FERRY_ASSERT_OFFSET(TransferLayout, done_chunks, 72);
FERRY_ASSERT_OFFSET(TransferLayout, error, 76);
FERRY_ASSERT_OFFSET(TransferLayout, remote_key, 80);
FERRY_ASSERT_OFFSET(TransferLayout, remote_request, 88);
FERRY_ASSERT_OFFSET(TransferLayout, remote_generation, 92);
FERRY_ASSERT_OFFSET(TransferLayout, remote_flags, 96);
FERRY_ASSERT_OFFSET(TransferLayout, destination_rank, 100);
FERRY_ASSERT_OFFSET(TransferLayout, out_of_reach, 104);
FERRY_ASSERT_OFFSET(TransferLayout, moved_source, 112);

}  // namespace ferry::shm
