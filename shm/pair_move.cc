#include "shm/pair_move.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <climits>
#include <thread>

#include "common/clock.h"
#include "common/error_code.h"
#include "shm/counter.h"

namespace ferry::shm {
namespace {

// Longer than any copy of a chunk, even by a thread that has lost its core.
constexpr uint64_t kPatienceNs = 1'000'000'000;

// False: the pair is closed.
bool Enter(PairLayout& own) {
  // Acquire: pairs with the closing of the gate, which waits for those who entered before.
  if ((FetchAdd(own.gate, uint64_t{1}, std::memory_order_acq_rel) & kGateClosed) == 0) {
    return true;
  }
  FetchAdd(own.gate, ~uint64_t{0}, std::memory_order_release);
  return false;
}

// Pairs with AwaitOutside: what this end did to the other is done.
void Leave(PairLayout& own) { FetchAdd(own.gate, ~uint64_t{0}, std::memory_order_release); }

bool IsIn(uint64_t gate, uint32_t life) { return gate >> kGateLifeShift == life; }

// False: its block has another life.
bool CloseIn(PairLayout& end, uint32_t life) {
  uint64_t gate = LoadAcquire(end.gate);
  while (IsIn(gate, life)) {
    // Pairs with Enter.
    if (CompareExchange(end.gate, gate, gate | kGateClosed, std::memory_order_acq_rel)) {
      return true;
    }
  }
  return false;
}

}  // namespace

void AwaitOutside(const PairLayout& end, uint32_t life) {
  const uint64_t until_ns = MonotonicNs() + kPatienceNs;
  while (true) {
    const uint64_t gate = LoadAcquire(end.gate);  // Pairs with Leave.
    if (!IsIn(gate, life) || (gate & kGateInside) == 0 || MonotonicNs() > until_ns) {
      return;
    }
    std::this_thread::yield();
  }
}

// Dekker: pairs with BeginToSleep, so one of the two sees the other.
void WakeWaiting(PairLayout& end) {
  if (Load(end.sleeps, std::memory_order_seq_cst) != 0 &&
      Exchange(end.sleeps, 0, std::memory_order_relaxed) != 0) {
    syscall(SYS_futex, &end.sleeps, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
  }
}

void ClosePair(const PairEnds& ends) {
  ShutGate(*ends.own);
  const bool is_there = CloseIn(*ends.other, ends.other_life);
  AwaitOutside(*ends.own, LifeOf(*ends.own));
  const ErrorCode error = Counter(&ends.own->done).error();
  if (is_there && error != ErrorCode::kPeerDied && error != ErrorCode::kNotFound) {
    AwaitOutside(*ends.other, ends.other_life);
  }
}

bool BeginMove(const PairEnds& ends, bool is_send, bool meets) {
  if (!Enter(*ends.own)) {
    return false;
  }
  if (!meets) {
    return true;
  }
  uint64_t& meet = (is_send ? ends.own : ends.other)->meet.value;
  // Acquires what the other end has put there before it started; releases what this one has.
  if (FetchAdd(meet, uint64_t{1}, std::memory_order_acq_rel) % 2 == 1) {
    return true;
  }
  Leave(*ends.own);
  return false;
}

// The other end first: it may be gone once it knows.
void CompleteMove(const PairEnds& ends) {
  FetchAdd(ends.other->done.value, uint64_t{1}, std::memory_order_seq_cst);
  WakeWaiting(*ends.other);
  Counter(&ends.own->done).Add(1);
  Leave(*ends.own);
}

void AbandonMove(const PairEnds& ends) { Leave(*ends.own); }

bool EnterToHelp(const PairEnds& ends) { return Enter(*ends.own); }

void ChunkClaims::Offer() {
  StoreRelaxed(waiting_.moved, 0);
  // Pairs with AnyLeft and Next. Only this end has used these words since the last round, which
  // both ends have completed.
  Exchange(waiting_.claim, round_, std::memory_order_seq_cst);
  WakeWaiting(waiting_);
}

// The fence is for the caller's look at what it waits for, which only acquires.
void BeginToSleep(PairLayout& own) {
  Exchange(own.sleeps, 1, std::memory_order_seq_cst);
  std::atomic_thread_fence(std::memory_order_seq_cst);
}

void Sleep(PairLayout& own, uint64_t timeout_ns) {
  const timespec timeout{0, static_cast<long>(std::min<uint64_t>(timeout_ns, 999'999'999))};
  syscall(SYS_futex, &own.sleeps, FUTEX_WAIT, 1, &timeout, nullptr, 0);
}

void EndSleep(PairLayout& own) { StoreRelaxed(own.sleeps, 0); }

bool ChunkClaims::Next(MoveChunk* chunk) {
  uint64_t claim = LoadAcquire(waiting_.claim);
  while (IsLeft(claim)) {
    if (CompareExchange(waiting_.claim, claim, claim + 1, std::memory_order_acq_rel)) {
      chunk->offset = (claim & 0xffffffff) * kMoveChunkBytes;
      chunk->size_bytes = std::min(kMoveChunkBytes, size_bytes_ - chunk->offset);
      ++own_;
      return true;
    }
  }
  return false;
}

bool ChunkClaims::Count(uint64_t also) {
  const uint64_t added = own_ + also;
  // Release: our bytes; acquire: those of the other. Pairs with itself.
  return added != 0 &&
         FetchAdd(waiting_.moved, added, std::memory_order_acq_rel) + added == count_ + 1;
}

}  // namespace ferry::shm
