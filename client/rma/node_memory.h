// Memory of the ranks of this node, the own one included, as one-sided operations reach it: mapped
// at its first use, and kept, so that a later operation costs a look into a short list.
//
// Memory that its owner has freed or no longer shares stays mapped for a while; data put there
// reach no one, and do no harm. It is unmapped when that rank's next memory is mapped here, and all
// memory of a rank is when the rank has ended (DropEnded). Only then is a device's memory free.
//
// Calling thread: any. Find blocks on the daemon at the first use of a segment. Errors are
// explained (FailureWords) in the words of the daemon or the GPU's driver.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "client/memory/memory.h"
#include "client/memory/peer_memory.h"
#include "client/p2p/progress.h"
#include "common/error_code.h"
#include "shm/accumulate.h"
#include "shm/fence.h"

namespace ferry::client {

class NodeMemory {
  // A thread that may be reading a list, or using the memory that the list names.
  struct Reader {
    Reader();
    ~Reader();
    std::atomic<bool> is_inside{false};
  };
  struct Readers;

 public:
  // A place in this process.
  struct Reached {
    ErrorCode error = ErrorCode::kOk;
    std::byte* address = nullptr;
    bool by_stream = false;  // only streams reach it
  };

  // The three outlive this.
  NodeMemory(const Progress* progress, const Memory* memory, PeerMemory* peer_memory);
  ~NodeMemory();
  NodeMemory(const NodeMemory&) = delete;
  NodeMemory& operator=(const NodeMemory&) = delete;

  // While a thread has a Use, the memory that Find has returned to it stays mapped. Each thread has
  // one at a time.
  class Use {
   public:
    explicit Use(NodeMemory* memory)
        : memory_(*memory), reader_(memory->progress_.threads() ? &OfThisThread() : nullptr) {
      if (reader_ != nullptr) {
        reader_->is_inside.store(true, std::memory_order_relaxed);
        if (shm::IsLightFenceEnabled()) [[likely]] {  // Dekker's pattern: Reap is the other side
          shm::LightFence();
        } else {
          shm::FullFence();
        }
      }
    }
    ~Use() {
      if (reader_ != nullptr) {
        reader_->is_inside.store(false, std::memory_order_release);  // Pairs with Reap.
      }
      if (memory_.has_retired_.load(std::memory_order_relaxed)) [[unlikely]] {
        memory_.Reap();
      }
    }
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;

   private:
    NodeMemory& memory_;
    Reader* const reader_;
  };

  // Unmaps the memory of ranks that have left or died. The calling thread has no Use.
  void DropEnded();

  // Returns where these bytes of a rank of this node are mapped, for as long as the caller's Use.
  // kInvalidBuffer: not all of them are in that segment; or the error with which the daemon refused
  // to hand the segment out.
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
  // Copies between a place that Find has returned and a buffer of this rank, of any kind.
  ErrorCode CopyTo(const Reached& there, const void* from, uint64_t size_bytes) {
    return Copy(there.address, there.by_stream, from, memory_.IsByStream(from), size_bytes);
  }
  ErrorCode CopyFrom(void* to, const Reached& there, uint64_t size_bytes) {
    return Copy(to, memory_.IsByStream(to), there.address, there.by_stream, size_bytes);
  }
  // Combines `count` elements at a place that Find has returned. CPUs must reach the place, and its
  // elements be of a kind that one CPU operation changes at once.
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

  static Reader& OfThisThread();
  static Reached Refuse(ErrorCode error, std::string words = {});
  uint32_t LaneOf(uint32_t rank) const { return peers_.by_rank[rank].local_index; }
  Reached FindSlowly(uint32_t rank, uint32_t segment, uint64_t offset, uint64_t size_bytes);
  Reached FindOwn(uint32_t segment, uint64_t offset, uint64_t size_bytes) const;
  void Add(uint32_t rank, Segment segment);
  bool HasEnded(uint32_t rank) const;
  void RetireEnded();
  void RetireWithdrawn(uint32_t rank);
  void Replace(uint32_t lane, Segments segments);
  void Reap();
  ErrorCode Copy(void* to, bool is_to_by_stream, const void* from, bool is_from_by_stream,
                 uint64_t size_bytes);

  const uint32_t own_rank_;
  const Progress& progress_;
  const engine::PeerTable& peers_;
  const Memory& memory_;
  PeerMemory& peer_memory_;
  std::unique_ptr<std::atomic<const Segments*>[]> of_;    // by lane; null: none is mapped
  std::mutex mutex_;                                      // guards those below, and changes of of_
  std::vector<std::unique_ptr<const Segments>> current_;  // by lane
  // Lists that were current: a reader may still read them, and use the memory that they name.
  std::vector<std::unique_ptr<const Segments>> retired_;
  std::atomic<bool> has_retired_{false};
};

}  // namespace ferry::client
