// Copies between the memory of this rank and of its peers, and tells which of it this rank can
// reach.
//
// Regions of peers are mapped when first needed and kept up to a limit, beyond which the least
// recently used are unmapped first; device memory that only streams reach is imported, and what a
// peer has lent is mapped read-only. A peer's private memory is reached by process_vm calls, where
// the daemon found them allowed.
//
// Calling thread: any, without the lease. Resolve may ask the daemon for a descriptor.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <utility>

#include "client/bootstrap/attach_connection.h"
#include "client/memory/memory.h"
#include "common/process_memory.h"
#include "common/zeroed_array.h"
#include "engine/transfer.h"
#include "gpu_backends/api/imported_memory.h"
#include "shm/segment.h"

namespace ferry::client {

struct PeerProcess {
  pid_t pid = 0;                  // 0 for ranks of other nodes
  bool memory_reachable = false;  // process_vm calls are allowed
};

// Copies chunks for one thread at a time: mappings that it resolved stay until its next Resolve
// round.
class PeerMemory : public engine::MemoryAccess {
 public:
  // `memory` is this rank's own; all outlive this.
  PeerMemory(uint32_t own_rank, ZeroedArray<PeerProcess> peers, const Memory* memory,
             AttachConnection* attach);

  engine::Reach Resolve(uint32_t rank, const shm::Location& where, uint64_t size_bytes) override;
  ErrorCode Copy(const engine::Reach& destination, const engine::Reach& source,
                 uint64_t size_bytes) override;

  // Copies between memory of this rank and of a peer. kUnsupported: the peer's is out of reach.
  enum class Direction { kFromPeer, kToPeer };
  Status CopyWithPeer(uint32_t rank, const shm::Location& where, const engine::Reach& own,
                      uint64_t size_bytes, Direction direction);
  // Makes several copies from or to private memory of a peer; this rank's end is not device memory
  // that only streams reach.
  ErrorCode CopyPrivate(uint32_t rank, std::span<const ProcessCopy> copies,
                        Direction direction) const;
  bool IsPrivateMemoryReachable(uint32_t rank) const { return peers_[rank].memory_reachable; }
  // Returns true if CopyWithPeer can copy from there without asking the daemon first. Does not
  // block: returns false, too, while another thread copies.
  bool IsAtHand(uint32_t rank, const shm::Location& where);
  // Maps `size_bytes` of a peer of the node (or of this rank) for as long as the result lives,
  // apart from the mappings that Resolve keeps and drops. kInvalidBuffer for memory that is lent:
  // callers write to the mapping.
  struct ForGood {
    std::shared_ptr<std::byte> memory;
    uint64_t region_bytes = 0;  // the size of the whole region
    bool by_stream = false;     // only streams reach it
  };
  StatusOr<ForGood> MapForGood(uint32_t rank, const shm::Location& where, uint64_t size_bytes);
  // Returns true if the daemon does not know the region any more: its rank has freed it, or has
  // left. Blocks on the daemon.
  bool IsWithdrawn(uint32_t rank, uint32_t region) const;
  // Unmaps the memory of a rank that has died or left, except what MapForGood has mapped.
  void Forget(uint32_t rank);
  // Registers the whole region of this host memory with the GPU backend, for as long as it is
  // mapped, so that devices reach it. MapForGood has mapped it, and it is mapped still. Where the
  // backend cannot do that, devices do without. May block while pages are pinned.
  void LetDevicesReach(uint32_t rank, const shm::Location& where);
  // Registers the region that MapForGood has mapped at `base` in the same way. kInvalidBuffer: no
  // region is mapped there; kUnsupported without a GPU backend; errors of
  // gpu::GpuBackend::RegisterHostMemory.
  Status LetDevicesReach(const std::byte* base);

  // A chunk for CopyChunks, and the result of its copy.
  struct Chunk {
    shm::TransferLayout* slot;
    uint32_t generation;
    engine::OwnEnd own;
    engine::ChunkResult result = engine::ChunkResult::kNothing;
    // The caller's own numbers for the chunk, which CopyChunks does not read.
    uint32_t request;
    uint32_t request_generation;
  };
  // Claims, copies and ends a chunk of each of these transfers, while their mappings stay in place.
  // One system call reads all chunks from the private memory of one process. CopyChunks calls
  // `found` with a chunk and what the GPU's driver said about a copy that failed, or, as
  // kUnsupported, what kept this process from reaching memory that it was handed.
  void CopyChunks(std::span<Chunk> chunks, const std::function<void(const Chunk&, Status)>& found);

 private:
  struct Key {
    uint32_t rank;
    uint32_t region;
    auto operator<=>(const Key&) const = default;
  };
  struct Mapped {
    Key key;
    shm::Mapping mapping;                         // one of these two
    std::unique_ptr<gpu::ImportedMemory> device;  // only streams reach it
    std::byte* base = nullptr;
    uint64_t size_bytes = 0;
    bool read_only = false;
    std::shared_ptr<void> registration;  // with the GPU backend; destroyed first
  };

  class PrivateReads;

  Status LetDevicesReach(Mapped* mapped) const;
  engine::Reach ResolveRegion(uint32_t rank, const shm::Location& where, uint64_t size_bytes);
  // Returns null with the daemon's refusal, or with kOk if this process cannot map what it was
  // handed.
  const Mapped* Map(const Key& key, ErrorCode* error);
  void DropFreed(uint32_t rank);
  Status TakeFound() { return std::exchange(found_, {}); }
  StatusOr<Mapped> MakeMapped(const Key& key, AttachAnswer& answer) const;

  const uint32_t own_rank_;
  const ZeroedArray<PeerProcess> peers_;
  const Memory* const memory_;
  AttachConnection* const attach_;
  std::mutex mutex_;          // held by a thread for the length of one chunk
  std::list<Mapped> mapped_;  // most recently used first
  std::map<Key, std::list<Mapped>::iterator> index_;
  std::map<Key, std::weak_ptr<Mapped>> for_good_;
  Status found_;  // the failure of the copy under way
};

}  // namespace ferry::client
