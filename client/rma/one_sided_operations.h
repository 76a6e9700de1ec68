// A rank's operations in the memory of other ranks (client/api/one_sided.h): with those of its
// node by its own CPU (NodeMemory), with others through the daemons or by direct links
// (RemoteOperations).
//
// Calling thread: any that the thread level allows. Blocks as the two do.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "client/api/one_sided.h"
#include "client/memory/memory.h"
#include "client/memory/peer_memory.h"
#include "client/p2p/progress.h"
#include "client/rma/node_memory.h"
#include "client/rma/one_sided_context.h"
#include "client/rma/remote_operations.h"
#include "shm/counters.h"

namespace ferry::client {

class OneSidedOperations final : public OneSided {
 public:
  struct Parts {  // all outlive it
    Progress* progress;
    Memory* memory;
    PeerMemory* peer_memory;
    bool private_reachable;  // by the daemon and its workers: this rank's memory
    shm::Statistics statistics;
    // NodePeers::WaitFor.
    std::function<void(bool (*done)(void*), void* argument, uint32_t peer, uint64_t end_ns)> wait;
    // As in RemoteOperations::Parts.
    std::function<void(uint32_t peer, uint64_t size_bytes)> carry_on_by_link = {};
  };
  explicit OneSidedOperations(const Parts& parts);
  OneSidedOperations(const OneSidedOperations&) = delete;
  OneSidedOperations& operator=(const OneSidedOperations&) = delete;

  // OneSided: documented there.
  OneSidedContext* MakeContext() override;
  void FreeContext(OneSidedContext* context) override;
  ErrorCode Put(OneSidedContext* context, const RemoteAddress& to, const void* from,
                uint64_t size_bytes, const Signal& signal, WhenDone when) override;
  ErrorCode Get(OneSidedContext* context, void* to, const RemoteAddress& from, uint64_t size_bytes,
                WhenDone when) override;
  ErrorCode MoveBlocksInNode(const RemoteAddress& there, gpu::StridedCopy move) override;
  ErrorCode SpreadInNode(std::span<const RemoteAddress> from, std::span<const RemoteAddress> to,
                         uint64_t block_bytes) override;
  ErrorCode ReduceInNode(std::span<const RemoteAddress> from, std::span<const RemoteAddress> to,
                         size_t own, gpu::Reduction reduction) override;
  ErrorCode Atomic(OneSidedContext* context, const AtomicCall& call, uint64_t* found,
                   WhenDone when) override;
  ErrorCode Accumulate(OneSidedContext* context, const AccumulateCall& call, const void* operands,
                       void* found, WhenDone when) override;
  void Fence(OneSidedContext* context) override;
  ErrorCode Quiet(OneSidedContext* context, uint32_t* failed_rank) override;
  ErrorCode QuietWith(OneSidedContext* context, uint32_t rank) override;
  bool IsQuiet(OneSidedContext* context) override { return remote_.IsQuiet(Or(context)); }
  shm::Location LocateHere(const void* pointer, uint64_t size_bytes) const override {
    return memory_.LocateForGood(pointer, size_bytes);
  }
  shm::Location Locate(const void* pointer, uint64_t size_bytes) const override;
  void TellOfChange(uint32_t rank) override { progress_.TellOfChange(rank); }

  // Calls NodeMemory::DropEnded. For a thread that is in no call here.
  void DropEnded() { node_.DropEnded(); }
  // Waits for the end of all operations under way, before the rank leaves. Blocks.
  void AwaitAll() { remote_.AwaitAll(); }

 private:
  bool IsOfNode(uint32_t rank) const { return progress_.peers().by_rank[rank].local; }
  OneSidedContext& Or(OneSidedContext* context) {
    return context != nullptr ? *context : default_context_;
  }
  // Returns Progress::PeerState of a rank that a call names.
  ErrorCode StateOf(uint32_t rank);
  // Calls Memory::LookAt for a buffer of this rank.
  ErrorCode LookAt(const void* buffer, uint64_t size_bytes);
  ErrorCode PutInNode(const RemoteAddress& to, const void* from, uint64_t size_bytes,
                      const Signal& signal);
  ErrorCode AtomicInNode(const AtomicCall& call, uint64_t* found);
  ErrorCode AccumulateInNode(OneSidedContext& context, const AccumulateCall& call,
                             const void* operands, void* found, WhenDone when);

  Progress& progress_;
  Memory& memory_;
  NodeMemory node_;
  RemoteOperations remote_;
  OneSidedContext default_context_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<OneSidedContext>> contexts_;
};

}  // namespace ferry::client
