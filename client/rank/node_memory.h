// Memory of the ranks of this node, the own one included, as one-sided operations reach it: mapped
// at its first use, and kept for good, so that a later operation costs a look into a short list.
//
// Memory that its owner has freed or no longer shares stays mapped here: what is put there reaches
// nobody, and harms nobody.
//
// Calling thread: any. Find blocks on the daemon at the first use of a segment. Errors are told
// (FailureWords), with what the daemon or the GPU's driver said.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "client/core/memory.h"
#include "client/core/peer_memory.h"
#include "common/error_code.h"
#include "engine/peer_table.h"
#include "shm/accumulate.h"

namespace ferry::client {

class NodeMemory {
 public:
  // A place in this process.
  struct Reached {
    ErrorCode error = ErrorCode::kOk;
    std::byte* address = nullptr;
    bool by_stream = false;  // only streams reach it
  };

  // All outlive it.
  NodeMemory(uint32_t own_rank, const engine::PeerTable* peers, const Memory* memory,
             PeerMemory* peer_memory);
  ~NodeMemory();
  NodeMemory(const NodeMemory&) = delete;
  NodeMemory& operator=(const NodeMemory&) = delete;

  // Where these bytes of a rank of this node are. kInvalidBuffer: not all of them are in that
  // segment; or the daemon's refusal to hand it out.
  Reached Find(uint32_t rank, uint32_t segment, uint64_t offset, uint64_t size_bytes) {
    if (rank != own_rank_) {
      // Pairs with Add: publishes the list.
      const Segments* const known = of_[LaneOf(rank)].load(std::memory_order_acquire);
      if (known != nullptr) {
        for (const Segment& candidate : *known) {
          if (candidate.id == segment) {
            return candidate.At(offset, size_bytes);
          }
        }
      }
    }
    return FindSlowly(rank, segment, offset, size_bytes);
  }
  // Copies between such a place and a buffer of this rank, of any kind.
  ErrorCode CopyTo(const Reached& there, const void* from, uint64_t size_bytes) {
    return Copy(there.address, from, size_bytes, there.by_stream || memory_.IsByStream(from));
  }
  ErrorCode CopyFrom(void* to, const Reached& there, uint64_t size_bytes) {
    return Copy(to, there.address, size_bytes, there.by_stream || memory_.IsByStream(to));
  }
  // Such places have to be where CPUs work, and the elements where one operation changes them.
  ErrorCode Accumulate(const Reached& there, const shm::Accumulation& what, const void* operands,
                       void* found, uint64_t count);

 private:
  struct Segment {
    uint32_t id = 0;
    bool by_stream = false;
    uint64_t size_bytes = 0;
    std::shared_ptr<std::byte> base;

    Reached At(uint64_t offset, uint64_t size) const {
      return offset <= size_bytes && size <= size_bytes - offset
                 ? Reached{ErrorCode::kOk, base.get() + offset, by_stream}
                 : Refuse(ErrorCode::kInvalidBuffer);
    }
  };
  using Segments = std::vector<Segment>;

  static Reached Refuse(ErrorCode error, std::string words = {});
  uint32_t LaneOf(uint32_t rank) const { return peers_.by_rank[rank].local_index; }
  Reached FindSlowly(uint32_t rank, uint32_t segment, uint64_t offset, uint64_t size_bytes);
  Reached FindOwn(uint32_t segment, uint64_t offset, uint64_t size_bytes) const;
  void Add(uint32_t rank, Segment segment);
  ErrorCode Copy(void* to, const void* from, uint64_t size_bytes, bool by_stream);

  const uint32_t own_rank_;
  const engine::PeerTable& peers_;
  const Memory& memory_;
  PeerMemory& peer_memory_;
  std::unique_ptr<std::atomic<const Segments*>[]> of_;  // by lane; null: none is mapped
  std::mutex mutex_;                                    // while one is added
  // All lists that there ever were: a reader may still look at an old one.
  std::vector<std::unique_ptr<const Segments>> all_;
};

}  // namespace ferry::client
