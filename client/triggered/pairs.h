// The matched persistent requests of a rank: matching with their partners, and starts by the rank
// itself. Queues (queues.h) start them by streams.
//
// Inside the node the two ends meet in one word: the end that starts second moves the bytes, with
// no request, no matching and no daemon in between. Between nodes a start rings a doorbell that the
// daemon watches.
//
// Calling thread: any that the thread level allows; for one request, one at a time. Offer and
// Release ask the daemon; Settle may, to map the other end.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <tuple>
#include <vector>

#include "client/bootstrap/attach_connection.h"
#include "client/memory/memory.h"
#include "client/memory/peer_memory.h"
#include "client/p2p/request_pool.h"
#include "client/triggered/counter_pages.h"
#include "client/triggered/pair.h"
#include "client/triggered/pair_blocks.h"
#include "client/triggered/shared_starts.h"
#include "common/status.h"
#include "engine/peer_table.h"
#include "shm/counters.h"

namespace ferry::client {

class Pairs {
 public:
  // The objects it works with; all outlive it.
  struct Parts {
    uint32_t rank;
    const engine::PeerTable* peers;
    RequestPool* requests;
    Memory* memory;
    PeerMemory* peer_memory;
    AttachConnection* attach;
    std::function<void()> ring_daemon;  // call it after `armed` of a pair has changed
    std::function<ErrorCode()> poison;
    shm::Statistics statistics;
    uint64_t cell_max_bytes;  // receives of at most this size have cells
    uint32_t cell_count;
  };
  explicit Pairs(Parts parts);
  ~Pairs();

  // Notes that a persistent request was made, and its place in the order of its kind. `in_place`:
  // as Message::in_place.
  void NoteMade(uint32_t request, bool in_place);
  // Offers persistent requests to be matched; skips those that are matched, or were offered before.
  // All or none. Blocks on the daemon. kInvalidRequest, kOutOfMemory, and the daemon's errors.
  Status Offer(std::span<const uint32_t> requests);
  // Checks the outcome of an offer: kOk, kWouldBlock, or why it failed.
  ErrorCode Settle(Pair& pair);
  // The bytes that the request sends, or has room for.
  uint64_t OwnBytes(const Pair& pair) const {
    return parts_.requests->Slot(pair.request).size_bytes;
  }
  // Returns null for a request that was never offered.
  Pair* Find(uint32_t request) const { return by_request_[request].get(); }
  template <typename Visit>
  void ForEach(Visit&& visit) {
    for (const auto& pair : by_request_) {
      if (pair != nullptr) {
        visit(*pair);
      }
    }
  }
  // Returns kOk if the request is matched, and no start of it is under way or enqueued.
  Status CheckIdle(uint32_t request) const;

  // Starts an idle matched request for the rank itself. If both ends have now started, moves the
  // bytes.
  ErrorCode Start(Pair& pair);
  // Makes each message of a matched send to another node follow those of the receives
  // (shm::FollowWords). To be called before the send's first start. kInternal: one of them is not
  // such a pair.
  ErrorCode Follow(const Pair& send, std::span<Pair* const> receives);
  // Arm prepares a start that a device makes through a ring; nothing moves before that. Call
  // CheckArm first: kUnsupported for pairs inside a node, and receives into cells; kInvalidBuffer
  // where the window is not the buffer itself.
  static Status CheckArm(const Pair& pair);
  void Arm(Pair& pair);
  // Returns true if the message of the last start is over; *error then says how. A received message
  // is in the buffer.
  bool IsOver(Pair& pair, ErrorCode* error);
  // Returns true if any start by the rank is under way. Call NoteOver once IsOver has returned
  // true.
  bool any_started() const { return started_.load(std::memory_order_relaxed) != 0; }
  void NoteOver() { started_.fetch_sub(1, std::memory_order_relaxed); }

  // Withdraws a request that is to be freed from the daemon; afterwards no process touches its
  // memory. Blocks that streams may still look at are handed to `keep` instead of being freed; pass
  // them to FreeBlock later.
  using Keep = std::function<void(void* block)>;
  void Release(uint32_t request, const Keep& keep);
  void FreeBlock(void* block);
  // Ends all operations under way, now and later, with this error. Any thread.
  void FailAll(ErrorCode error);
  // Takes the request back from the daemon, which tells the other end. No start has an effect any
  // more. kOk: the daemon no longer looks at this end, either.
  Status Withdraw(Pair& pair);
  // Separates the two ends; the daemon tells the other one.
  void Abandon(Pair& pair, ErrorCode error);
  void RingDaemon() const { parts_.ring_daemon(); }
  // Counts a start inside the node.
  void Count(const Pair& pair, shm::Statistic mover) {
    if (pair.is_send) {
      parts_.statistics.AddShared(mover);
    }
  }
  SharedStarts& shared_starts() { return shared_starts_; }
  // Returns the word in which a store of 1 makes the next start of a pair between nodes; null: its
  // doorbell makes it. Call it before `armed` says that the start was made.
  uint64_t* PageFor(Pair& pair, uint64_t start) {
    if (pair.page == nullptr && pair.may_have_page()) {
      shared_starts_.Leave(pair);
      pair.page = pages_.Take(pair.end, start);
      pair.has_no_page = pair.page == nullptr;
    }
    return pair.page;
  }
  // Call it before a stream starts a message inside the node, so that its device may move it alone.
  void LetDevicesReach(Pair& pair);
  // Call it before a start: fills what the other end will read.
  ErrorCode Fill(Pair& pair);

 private:
  using Kind = std::tuple<bool, uint32_t, int32_t, int32_t>;  // send, context, peer, tag

  StatusOr<std::unique_ptr<Pair>> Make(uint32_t request);
  // Makes the pair's window and cells.
  Status MakeWindow(Pair& pair);
  // Pair::nic_region, as far as the rank knows.
  uint32_t FindNicRegion(const Pair& pair);
  Status StandIn(std::span<Pair* const> pairs);
  Status OfferInPieces(std::span<Pair* const> order);
  Status OfferTogether(std::span<Pair* const> pairs);
  void FreeBlocks(const Pair& pair, const Keep& keep);
  ErrorCode MapPeer(Pair& pair);
  ErrorCode Copy(const PairMemory& to, const PairMemory& from, uint64_t bytes) const;
  ErrorCode StartInNode(Pair& pair);
  ErrorCode Move(Pair& pair);
  bool Help(Pair& pair) const;
  void WakePeer(const Pair& pair) const;
  void AwaitPeerOutside(const Pair& pair);
  bool IsInPlace(uint32_t request) {
    std::lock_guard lock(mutex_);
    return in_place_[request];
  }
  bool IsLocal(uint32_t rank) const { return parts_.peers->by_rank[rank].local; }

  Parts parts_;
  std::mutex mutex_;
  std::map<Kind, uint64_t> made_;
  std::vector<uint64_t> ordinals_;  // by request
  std::vector<bool> in_place_;      // likewise
  std::vector<std::unique_ptr<Pair>> by_request_;
  std::set<uint32_t> not_by_nic_;     // regions of device memory that the network card refused
  std::atomic<uint32_t> started_{0};  // starts by the rank that are not over
  PairBlocks blocks_;
  SharedStarts shared_starts_;
  CounterPages pages_;
};

}  // namespace ferry::client
