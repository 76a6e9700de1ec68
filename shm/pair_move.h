// Moves the bytes of a matched pair whose ends share a node, by the ranks or their streams
// (docs/stream_triggered.md; shm/layout/pair_layout.h has the words).
//
// The end that starts second moves the message. A long message is cut into chunks, and a waiter at
// the other end helps: both claim chunks in a word until none is left, and the one that counts the
// last chunk as moved completes the message at both ends. Without a helper the mover copies all of
// it, so a device need not help.
//
// A pair can end at any time, and its memory is then used for other things. So an end marks its
// gate while it touches the other end or its block, and checks that the pair is not closed.
// ClosePair closes both gates and waits until no end is inside: neither memory nor words are
// touched after that. The other end's block may belong to another pair by then, so each block
// counts its lives, and a gate is closed only in the life that it was matched in. Blocks are never
// used for anything else (PairBlocks).
//
// Calling thread: one at a time for each end, but ClosePair and ShutGate: any. Only ClosePair,
// AwaitOutside and SleepUnless block.
#pragma once

#include <algorithm>
#include <cstdint>

#include "shm/atomic.h"
#include "shm/layout/pair_layout.h"

namespace ferry::shm {

struct PairEnds {
  PairLayout* own = nullptr;
  PairLayout* other = nullptr;
  uint32_t other_life = 0;  // LifeOf(*other) when they were matched
};

// ---- Gates ----

inline constexpr uint64_t kGateInside = 0xffff;      // mask: how many operations are inside
inline constexpr uint64_t kGateClosed = 1ULL << 16;  // for this life
inline constexpr int kGateLifeShift = 32;

inline uint32_t LifeOf(const PairLayout& end) {
  return static_cast<uint32_t>(LoadAcquire(end.gate) >> kGateLifeShift);
}

// Shuts this end's gate: its operations do nothing any more; those under way stop soon. Does not
// wait.
inline void ShutGate(PairLayout& own) { FetchOr(own.gate, kGateClosed, std::memory_order_acq_rel); }

// Waits until no operation is inside the end's shut gate, or its block has another life than
// `life`; at most a second.
void AwaitOutside(const PairLayout& end, uint32_t life);

// Closes the pair, and waits until neither end moves data: for as long as it takes to copy one
// chunk, and up to a second for each gate. If `done` of this end says that the other process has
// died, it does not wait for the other gate. Must not be called from inside the gate.
void ClosePair(const PairEnds& ends);

// ---- Moving ----

// Starts a round at this end. True: this end moves the message, and is inside the gate until
// CompleteMove, AbandonMove or MoveInChunks. `meets`: true for modes other than ready, in which the
// starts of both ends are counted.
bool BeginMove(const PairEnds& ends, bool is_send, bool meets);
// Completes the message, whose data are in place, at both ends. Leaves the gate.
void CompleteMove(const PairEnds& ends);
// Leaves the gate without completing the message.
void AbandonMove(const PairEnds& ends);

inline bool IsMovedInChunks(uint64_t size_bytes) { return size_bytes >= 2 * kMoveChunkBytes; }

// One chunk of the message of a round.
struct MoveChunk {
  uint64_t offset;
  uint64_t size_bytes;
};

// The chunks of a message that one end copies.
class ChunkClaims {
 public:
  // Claims are counted in `claim` and `moved` of the end that waits.
  ChunkClaims(PairLayout& waiting, uint64_t round, uint64_t size_bytes)
      : waiting_(waiting),
        round_(round << 32),
        count_((size_bytes + kMoveChunkBytes - 1) / kMoveChunkBytes),
        size_bytes_(size_bytes) {}

  // Makes the chunks of the round claimable. For the mover, before it claims.
  void Offer();
  // Returns true if unclaimed chunks of this round are left.
  bool AnyLeft() const { return IsLeft(LoadAcquire(waiting_.claim)); }
  bool Next(MoveChunk* chunk);
  // Counts the chunks that this end has copied; called once, after the last. `also`: 1 for the
  // mover, which is awaited even if the helper has copied all. True: the message is now whole.
  bool Count(uint64_t also);

 private:
  bool IsLeft(uint64_t claim) const {
    return (claim & ~uint64_t{0xffffffff}) == round_ && (claim & 0xffffffff) < count_;
  }

  PairLayout& waiting_;
  const uint64_t round_;  // in the upper half
  const uint64_t count_;
  const uint64_t size_bytes_;
  uint64_t own_ = 0;
};

// Moves a message in chunks, by calls of copy(offset, size_bytes). For the mover, in place of a
// copy and CompleteMove, where each end can reach the memory of both. Returns once all chunks are
// claimed and its own are in place; the end that counts the last chunk completes the message.
template <typename Copy>
void MoveInChunks(const PairEnds& ends, uint64_t round, uint64_t size_bytes, Copy&& copy) {
  ChunkClaims claims(*ends.other, round, size_bytes);
  claims.Offer();
  MoveChunk chunk{};
  while ((LoadRelaxed(ends.own->gate) & kGateClosed) == 0 && claims.Next(&chunk)) {
    copy(chunk.offset, chunk.size_bytes);
  }
  if (claims.Count(1)) {
    CompleteMove(ends);
  } else {
    AbandonMove(ends);
  }
}

// Wakes the thread that sleeps at that end. Call it after a sequentially consistent change of the
// word that the thread waits for.
void WakeWaiting(PairLayout& end);

// For a thread that waits for a round and has spun long enough: sleeps until the other end, or
// between nodes the daemon, offers or completes a message, at most `timeout_ns`, unless `met()` is
// true already. Other changes of `done` (by a failure of the pair, or a NIC) do not wake it.
// Blocks.
void BeginToSleep(PairLayout& own);
void Sleep(PairLayout& own, uint64_t timeout_ns);
void EndSleep(PairLayout& own);
template <typename Met>
void SleepUnless(PairLayout& own, uint64_t timeout_ns, Met&& met) {
  BeginToSleep(own);
  if (!met()) {
    Sleep(own, timeout_ns);
  }
  EndSleep(own);
}

// Enters the gate of the waiting end, for HelpMove. False: the pair is closed.
bool EnterToHelp(const PairEnds& ends);
// For a thread that waits for a round: copies chunks of its message if there are any, as long as
// `goes_on()`. True: it has copied some.
template <typename Copy, typename GoesOn>
bool HelpMove(const PairEnds& ends, uint64_t round, uint64_t size_bytes, Copy&& copy,
              GoesOn&& goes_on) {
  ChunkClaims claims(*ends.own, round, size_bytes);
  if (!IsMovedInChunks(size_bytes) || !claims.AnyLeft() || !EnterToHelp(ends)) {
    return false;
  }
  bool any = false;
  MoveChunk chunk{};
  while ((LoadRelaxed(ends.own->gate) & kGateClosed) == 0 && goes_on() && claims.Next(&chunk)) {
    copy(chunk.offset, chunk.size_bytes);
    any = true;
  }
  if (claims.Count(0)) {
    CompleteMove(ends);
  } else {
    AbandonMove(ends);
  }
  return any;
}

}  // namespace ferry::shm
