// Puts, gets, ordering and signals (OpenSHMEM 1.5, sections 9.6, 9.7, 9.8.5, 9.11): with local PEs,
// loads and stores of the calling thread in memory that it has mapped, or, in device memory that no
// CPU reaches, copies by the device; with remote ones, operations of libferry (remote.h). See
// operations.h.
#include <atomic>
#include <string>

#include "shm/atomic.h"
#include "shm/word_copy.h"
#include "shmem/base/copies.h"
#include "shmem/base/fail.h"
#include "shmem/base/lives.h"
#include "shmem/base/operations.h"
#include "shmem/rma/checks.h"
#include "shmem/rma/reach.h"
#include "shmem/rma/remote.h"

namespace ferry::shmem {
namespace {

template <size_t kBytes>
void CopyBlocksOf(std::byte* to, const std::byte* from, const Stride& stride) {
  for (size_t i = 0; i < stride.blocks; ++i) {
    shm::CopyWords(to, from, kBytes);
    to += stride.dest_stride_bytes;
    from += stride.source_stride_bytes;
  }
}

void CopyBlocks(std::byte* to, const std::byte* from, const Stride& stride) {
  switch (stride.block_bytes) {
    case 1:
      return CopyBlocksOf<1>(to, from, stride);
    case 2:
      return CopyBlocksOf<2>(to, from, stride);
    case 4:
      return CopyBlocksOf<4>(to, from, stride);
    case 8:
      return CopyBlocksOf<8>(to, from, stride);
    case 16:
      return CopyBlocksOf<16>(to, from, stride);
    default:
      for (size_t i = 0; i < stride.blocks; ++i) {
        shm::CopyWords(to, from, stride.block_bytes);
        to += stride.dest_stride_bytes;
        from += stride.source_stride_bytes;
      }
  }
}

// The bytes from the first block's beginning to the last one's end. Strides are at least one block.
size_t Extent(const char* call, ptrdiff_t stride_bytes, const Stride& stride) {
  if (stride_bytes < static_cast<ptrdiff_t>(stride.block_bytes) && stride.blocks > 1) {
    Fail(call, "a stride of " + std::to_string(stride_bytes) +
                   " bytes is less than what it steps over, " + std::to_string(stride.block_bytes) +
                   " bytes");
  }
  return static_cast<size_t>(stride_bytes) * (stride.blocks - 1) + stride.block_bytes;
}

// Apart from the usual case, and with its arguments, so that that one is a few instructions and a
// jump.
[[gnu::noinline]] void PutElsewhere(const char* call, Context* context, void* dest,
                                    const void* source, size_t bytes, int pe,
                                    Completion completion) {
  const PeAddress to = ReachSlowly(call, context, dest, bytes, pe);
  if (job.is_checking) {
    CheckMove(call, to, {"source", source, bytes});
  }
  if (to.is_remote()) {
    PutRemote(call, context, to, source, bytes, completion);
  } else {
    CopyAnyhow(call, to.address(), source, bytes, to.is_by_stream());
  }
}

[[gnu::noinline]] void GetElsewhere(const char* call, Context* context, void* dest,
                                    const void* source, size_t bytes, int pe,
                                    Completion completion) {
  const PeAddress from = ReachSlowly(call, context, source, bytes, pe);
  if (job.is_checking) {
    CheckMove(call, from, {"dest", dest, bytes});
  }
  if (from.is_remote()) {
    GetRemote(call, context, dest, from, bytes, completion);
  } else {
    CopyAnyhow(call, dest, from.address(), bytes, from.is_by_stream());
  }
}

// A put to a local PE, a get from it or an atomic operation there is over when the call returns,
// even if that PE is dead: its memory stays mapped. So only the calls that order operations tell
// the program that a PE has died.
void LookForDeadNeighbours(const char* call) {
  // Pairs with the daemon's bump, behind the PE's state.
  const uint32_t epoch = shm::LoadAcquire(*job.death_epoch);
  if (const int pe = FindNeighbourThatDied(); pe >= 0) {
    const ErrorCode state = StateOf(pe);
    GiveUp(call, state,
           StateText(pe, state) + "; this one may have put to it, or got from it, since then");
  }
  job.deaths_seen.store(epoch, std::memory_order_relaxed);
}

// The part of a fence that concerns more than this PE and local ones that live.
[[gnu::noinline]] void FenceElsewhere(const char* call, Context* context) {
  CheckRunning(call);
  LookForDeadNeighbours(call);
  if (context->has_remote()) {
    FenceRemote(context);
  }
  std::atomic_thread_fence(std::memory_order_release);
}

[[gnu::noinline]] void QuietElsewhere(const char* call, Context* context) {
  CheckRunning(call);
  LookForDeadNeighbours(call);
  if (context->has_remote()) {
    QuietRemote(call, context);
  }
  std::atomic_thread_fence(std::memory_order_seq_cst);
}

// Returns true if an order with this context takes more than a fence of the CPU.
[[gnu::always_inline]] inline bool IsMoreThanAFence(const Context* context) {
  return context->has_remote() || !job.is_running() || job.has_new_deaths();
}

// Both pair with whoever waits for the signal: the data are there before it.
void Update(uint64_t& word, uint64_t signal, bool is_set) {
  if (is_set) {
    shm::StoreRelease(word, signal);
  } else {
    shm::FetchAdd(word, signal, std::memory_order_release);
  }
}

void UpdateSignal(const char* call, Context* context, uint64_t* address, uint64_t signal,
                  bool is_set, int pe) {
  const PeAddress word =
      ReachWord(call, context, "the signal's address", address, sizeof(*address), pe);
  if (word.is_local()) [[likely]] {
    return Update(*reinterpret_cast<uint64_t*>(word.address()), signal, is_set);
  }
  UpdateRemote(call, context, word, {.op = is_set ? Atomic::kSet : Atomic::kAdd, .value = signal});
}

}  // namespace

void Put(const char* call, Context* context, void* dest, const void* source, size_t bytes, int pe,
         Completion completion) {
  std::byte* const to = ReachLocalHeap(context, dest, bytes, pe);
  if (to != nullptr && !MayBeByStream(source)) [[likely]] {
    return shm::CopyWords(to, source, bytes);
  }
  PutElsewhere(call, context, dest, source, bytes, pe, completion);
}

void Get(const char* call, Context* context, void* dest, const void* source, size_t bytes, int pe,
         Completion completion) {
  const std::byte* const from = ReachLocalHeap(context, source, bytes, pe);
  if (from != nullptr && !MayBeByStream(dest)) [[likely]] {
    return shm::CopyWords(dest, from, bytes);
  }
  GetElsewhere(call, context, dest, source, bytes, pe, completion);
}

void PutStrided(const char* call, Context* context, void* dest, const void* source,
                const Stride& stride, int pe) {
  if (stride.blocks != 0) {
    const size_t extent = Extent(call, stride.dest_stride_bytes, stride);
    const PeAddress to = Reach(call, context, dest, extent, pe);
    if (job.is_checking) [[unlikely]] {
      CheckStridedMove(call, to, "source", source, stride);
    }
    if (to.is_remote()) {
      return PutStridedRemote(call, context, to, source, stride);
    }
    const auto* const from = static_cast<const std::byte*>(source);
    const bool is_by_stream = IsByStream(from);
    if (to.is_local() && !is_by_stream) [[likely]] {
      return CopyBlocks(to.address(), from, stride);
    }
    CopyBlocksByStream(call, to.address(), to.is_by_stream(), from, is_by_stream, stride);
  }
}

void GetStrided(const char* call, Context* context, void* dest, const void* source,
                const Stride& stride, int pe) {
  if (stride.blocks != 0) {
    const size_t extent = Extent(call, stride.source_stride_bytes, stride);
    const PeAddress from = Reach(call, context, source, extent, pe);
    if (job.is_checking) [[unlikely]] {
      CheckStridedMove(call, from, "dest", dest, stride);
    }
    if (from.is_remote()) {
      return GetStridedRemote(call, context, dest, from, stride);
    }
    auto* const to = static_cast<std::byte*>(dest);
    const bool is_by_stream = IsByStream(to);
    if (from.is_local() && !is_by_stream) [[likely]] {
      return CopyBlocks(to, from.address(), stride);
    }
    CopyBlocksByStream(call, to, is_by_stream, from.address(), from.is_by_stream(), stride);
  }
}

// ---- Signals ------------------------------------------------------------------------------------

void PutSignal(const char* call, Context* context, void* dest, const void* source, size_t bytes,
               uint64_t* signal_address, uint64_t signal, int signal_op, int pe,
               Completion completion) {
  const bool is_set = signal_op == kSignalSet;
  if (!is_set && signal_op != kSignalAdd) [[unlikely]] {
    Fail(call, "the signal operator " + std::to_string(signal_op) +
                   " is neither SHMEM_SIGNAL_SET nor SHMEM_SIGNAL_ADD");
  }
  const PeAddress to = Reach(call, context, dest, bytes, pe);
  const PeAddress word =
      ReachWord(call, context, "the signal's address", signal_address, sizeof(*signal_address), pe);
  if (job.is_checking) [[unlikely]] {
    CheckMove(call, to, {"source", source, bytes});
    CheckSignal(call, to, bytes, word);
  }
  if (word.is_local()) [[likely]] {
    if (to.is_local() && !MayBeByStream(source)) [[likely]] {
      shm::CopyWords(to.address(), source, bytes);
    } else {
      CopyAnyhow(call, to.address(), source, bytes, to.is_by_stream());
    }
    return Update(*reinterpret_cast<uint64_t*>(word.address()), signal, is_set);
  }
  if (bytes == 0) {
    return UpdateRemote(call, context, word,
                        {.op = is_set ? Atomic::kSet : Atomic::kAdd, .value = signal});
  }
  const client::RemoteAddress place = word.place();
  PutRemote(call, context, to, source, bytes, completion,
            {.update = is_set ? shm::SignalUpdate::kSet : shm::SignalUpdate::kAdd,
             .segment = place.segment,
             .offset = place.offset,
             .value = signal});
}

uint64_t SignalFetch(const char* call, const uint64_t* signal_address) {
  CheckWords(call, "the signal's address", signal_address, sizeof(*signal_address));
  return shm::LoadAcquire(*signal_address);  // Pairs with PutSignal.
}

void SignalSet(const char* call, Context* context, uint64_t* signal_address, uint64_t signal,
               int pe) {
  UpdateSignal(call, context, signal_address, signal, true, pe);
}

void SignalAdd(const char* call, Context* context, uint64_t* signal_address, uint64_t signal,
               int pe) {
  UpdateSignal(call, context, signal_address, signal, false, pe);
}

// ---- Ordering -----------------------------------------------------------------------------------

// The stores of puts are the program's own plain ones, and what orders them is for plain loads of
// other PEs: a fence, not a word with release.
void Fence(const char* call, Context* context) {
  if (context != nullptr && IsMoreThanAFence(context)) [[unlikely]] {
    return FenceElsewhere(call, context);
  }
  std::atomic_thread_fence(std::memory_order_release);
}

// All that was put is seen by all PEs before what this one does next: the store buffer is empty.
void Quiet(const char* call, Context* context) {
  if (context != nullptr && IsMoreThanAFence(context)) [[unlikely]] {
    return QuietElsewhere(call, context);
  }
  std::atomic_thread_fence(std::memory_order_seq_cst);
}

void PeQuiet(const char* call, Context* context, const int* target_pes, size_t npes) {
  if (context != nullptr) {
    CheckRunning(call);
    if (job.has_new_deaths()) {
      LookForDeadNeighbours(call);
    }
    for (size_t i = 0; i < npes; ++i) {
      const int pe = target_pes[i];
      if (!context->team->Has(pe)) {
        Fail(call, "target_pes[" + std::to_string(i) + "] is " + std::to_string(pe) +
                       ", which is no PE of the context's team");
      }
      const int world_pe = context->team->pes[static_cast<size_t>(pe)];
      if (context->has_remote() && !job.IsLocal(world_pe)) {
        QuietRemoteWith(call, context, world_pe);
      }
    }
  }
  std::atomic_thread_fence(std::memory_order_seq_cst);
}

// ---- Where memory is ----------------------------------------------------------------------------

namespace {

void CheckPe(const char* call, int pe) {
  CheckRunning(call);
  if (!WorldTeam()->Has(pe)) {
    Fail(call,
         "PE " + std::to_string(pe) + " is not between 0 and " + std::to_string(job.size - 1));
  }
}

void* PointerTo(const void* address, int pe) {
  const Segment* const segment = job.FindSegment(address, 1);
  if (segment == nullptr || segment->is_by_stream ||
      segment->shifts[static_cast<size_t>(pe)] == kRemote) {
    return nullptr;
  }
  return const_cast<std::byte*>(static_cast<const std::byte*>(address)) +
         segment->shifts[static_cast<size_t>(pe)];
}

}  // namespace

int PeAccessible(const char* call, int pe) {
  CheckRunning(call);
  return WorldTeam()->Has(pe) ? 1 : 0;
}

int AddrAccessible(const char* call, const void* address, int pe) {
  CheckRunning(call);
  return WorldTeam()->Has(pe) && job.FindSegment(address, 1) != nullptr ? 1 : 0;
}

void* Pointer(const char* call, const void* dest, int pe) {
  CheckPe(call, pe);
  return PointerTo(dest, pe);
}

void* TeamPointer(const char* call, Team* team, const void* dest, int pe) {
  CheckRunning(call);
  if (team == nullptr) {
    return nullptr;
  }
  if (!CheckTeam(call, team).Has(pe)) {
    Fail(call, "PE " + std::to_string(pe) + " is not between 0 and " +
                   std::to_string(team->size - 1) + ", those of the team");
  }
  return PointerTo(dest, team->pes[static_cast<size_t>(pe)]);
}

}  // namespace ferry::shmem
