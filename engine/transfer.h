// Copies a matched message inside a node, chunk by chunk. The receiver, the sender and the progress
// worker take part if they are awake.
//
// A participant claims a chunk, copies it and counts it as done; the one that counts the last
// publishes kDone. A transfer cannot end while a chunk of it is claimed, so its slot is not reused
// during a copy.
//
// Calling thread: any, without the lease.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>

#include "common/error_code.h"
#include "shm/layout/transfer_layout.h"

namespace ferry::engine {

// The way from this process to a range of a rank's memory.
struct Reach {
  std::byte* mapped = nullptr;  // here, or
  pid_t pid = 0;                // in that process,
  uint64_t address = 0;         // at that address,
  // or no process reaches it any more: the transfer fails with this. kInvalidBuffer: there is no
  // such memory.
  ErrorCode error = ErrorCode::kOk;
  bool by_stream = false;  // `mapped` is device memory that only streams reach
  bool read_only = false;  // `mapped` is for reading
  bool never = false;      // not ok(), and asking again will not help; others may reach it
  bool ok() const { return mapped != nullptr || pid != 0; }
};

// Tells what memory a participant can reach, and copies it.
class MemoryAccess {
 public:
  virtual ~MemoryAccess() = default;
  // [where, where + size_bytes) in the memory of `rank`; both come from words that any rank of the
  // node can write to. Not ok() when it is not for this process to touch; others may still be able
  // to, unless it has an error. May map a region (a system call).
  virtual Reach Resolve(uint32_t rank, const shm::Location& where, uint64_t size_bytes) = 0;
  virtual ErrorCode Copy(const Reach& destination, const Reach& source, uint64_t size_bytes) = 0;
};

// The data that moves.
struct TransferRts {
  shm::Location source;
  uint64_t size_bytes = 0;
  uint32_t chunk_bytes = 0;
  uint32_t source_rank = 0;
  uint32_t destination_rank = 0;
};

// The owner's first touch of a reusable slot: it may be matched from now on.
void AnnounceTransfer(shm::TransferLayout& slot, uint32_t generation, const TransferRts& rts);
// The sender takes its RTS back, and may use the slot anew. False: the receiver was first.
bool WithdrawRts(shm::TransferLayout& slot, uint32_t generation);
// The sender goes on without its source, of which it has made a copy in a region of its own: that
// is what will be read. False: the receiver was first.
bool MoveAnnounced(shm::TransferLayout& slot, uint32_t generation, const shm::Location& copy);
// True while the RTS has not been taken, moved or withdrawn.
bool IsAnnounced(const shm::TransferLayout& slot, uint32_t generation);
// True while the RTS has not been withdrawn. Its sender may withdraw it until it is taken.
bool IsRtsThere(const shm::TransferLayout& slot, uint32_t generation);
// The receiver decides for the RTS, before any other process learns of it: it cannot be withdrawn
// any more. False: it was. Taking it twice does no harm: a thread that takes over from a dead
// receiver's may do so.
bool TakeRts(shm::TransferLayout& slot, uint32_t generation);
// The receiver's part, once it has taken the RTS: `size_bytes` (cut to its capacity) may be
// copied to `destination` from now on. False: the slot does not announce this generation, or not so
// much. Where streams copy at an end (Location::flags), the message is not cut into chunks.
bool MatchTransfer(shm::TransferLayout& slot, uint32_t generation, const shm::Location& destination,
                   uint64_t size_bytes);
// The source of an RTS that the receiver has taken.
shm::Location SourceOf(const shm::TransferLayout& slot);
// In place of MatchTransfer, for a message of one chunk: claims the chunk, too, so that only the
// caller, the receiver, copies it. The transfer ends with EndChunk, of 1. False: as MatchTransfer,
// or there are more chunks.
bool MatchWhole(shm::TransferLayout& slot, uint32_t generation, uint64_t size_bytes);
// Announces and matches a transfer in a slot of the receiver's own, for the daemon to move: no
// other process can claim it.
void DescribeTransfer(shm::TransferLayout& slot, uint32_t generation, const TransferRts& rts,
                      const shm::Location& destination);

// The caller's own end, from memory that only it can write to: what the slot says of it does not
// count, or a peer could have it copy anywhere in its own memory.
struct OwnEnd {
  bool is_source = false;
  uint32_t rank = 0;
  uint32_t peer = 0;  // the rank at the other end
  shm::Location where;
  uint64_t size_bytes = 0;  // that may move, at most
  // False: noted while the request might be used anew, so its words may be of several messages.
  // Nothing is copied then unless the slot agrees.
  bool certain = true;
};

enum class ChunkResult {
  kNothing,   // not matched yet, all chunks claimed, or out of this process's reach
  kCopied,    // one chunk further
  kFinished,  // that was the last: wake both sides
  kLeft,      // this end will never reach the other, said once: wake the other, which may sleep
};

// A chunk that the caller has claimed, and no other process copies. The transfer waits for
// EndChunk.
struct ClaimedChunk {
  Reach source;
  Reach destination;
  uint64_t size_bytes;  // 0: there is nothing to copy
  uint32_t chunks;      // of the whole transfer
  ErrorCode error;      // of the chunk; kOk until copying it fails
};

// Claims one chunk of the transfer in `slot`, if its generation is `generation`. `own` is null
// where the caller is neither end. Where neither end will ever reach the other's memory, the
// transfer fails with kUnsupported. kCopied: *claimed is the caller's to copy, and to end.
ChunkResult ClaimChunk(shm::TransferLayout& slot, uint32_t generation, MemoryAccess& memory,
                       const OwnEnd* own, ClaimedChunk* claimed);
// Ends a claimed chunk, of so many, that has been copied, or has failed to be. Never kNothing.
ChunkResult EndChunk(shm::TransferLayout& slot, uint32_t generation, uint32_t chunks,
                     ErrorCode error);
// Claims one chunk, copies it and ends it.
ChunkResult CopyChunk(shm::TransferLayout& slot, uint32_t generation, MemoryAccess& memory,
                      const OwnEnd* own = nullptr);

// True once the receiver has found that it will never reach the source: it is the sender's turn.
bool IsLeftToSource(const shm::TransferLayout& slot, uint32_t generation);

// Once IsLeftToSource, for the sender: has the receiver read a copy of the source instead, which
// lies in a region of the sender's, and begin anew. Once in a generation. False: it is not left to
// the source, or has a copy already.
bool RelocateSource(shm::TransferLayout& slot, uint32_t generation, const shm::Location& copy);

// The state of a transfer when a side looks at it. If the slot has another generation, it was used
// anew, so this transfer ended well: after an error the owner keeps the slot until the receiver has
// seen it.
struct TransferProgress {
  bool done = false;
  ErrorCode error = ErrorCode::kOk;  // valid when done
};
TransferProgress Look(const shm::TransferLayout& slot, uint32_t generation);

// The receiver's last touch after an error: the owner may use the slot anew. After a success there
// is none, so a receiver that computes delays no sender.
void Release(shm::TransferLayout& slot, uint32_t generation);
// True if the owner may use the slot for another message, under another generation.
bool IsReusable(const shm::TransferLayout& slot);

}  // namespace ferry::engine
