// The matched persistent requests of a rank: how they find their partners, and how the rank itself
// starts them. Queues (queues.h) start them by streams.
//
// Inside the node the two ends meet in one word: who starts second moves the bytes, with no
// request, no matching and no daemon in between. Between nodes a start rings a doorbell that the
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
#include <span>
#include <tuple>
#include <vector>

#include "client/core/control_library.h"
#include "client/core/memory.h"
#include "client/core/peer_memory.h"
#include "client/core/request_pool.h"
#include "client/triggered/channel.h"
#include "client/triggered/channel_blocks.h"
#include "client/triggered/shared_starts.h"
#include "common/status.h"
#include "engine/peer_table.h"
#include "shm/counters.h"

namespace ferry::client {

class Channels {
 public:
  // What it works with; all outlive it.
  struct Parts {
    uint32_t rank;
    const engine::PeerTable* peers;
    RequestPool* requests;
    Memory* memory;
    PeerMemory* peer_memory;
    ControlLibrary* control;
    std::function<void()> ring_daemon;  // after `armed` of channels has changed
    std::function<ErrorCode()> poison;
    shm::Statistics statistics;
    uint64_t cell_max_bytes;  // receives of at most so much have cells
    uint32_t cell_count;
  };
  explicit Channels(Parts parts);
  ~Channels();

  // A persistent request was made: it has its place in the order of its kind.
  void NoteMade(uint32_t request);
  // Offers persistent requests to be matched; those that are, or were offered before, are left as
  // they are. All or none. Blocks on the daemon. kInvalidRequest, kOutOfMemory, and what the daemon
  // says.
  Status Offer(std::span<const uint32_t> requests);
  // Looks what became of an offer: kOk, kWouldBlock, or why it failed.
  ErrorCode Settle(Channel& channel);
  // Bytes that the request has room for, or sends.
  uint64_t OwnBytes(const Channel& channel) const {
    return parts_.requests->Slot(channel.request).size_bytes;
  }
  // Null: it was never offered.
  Channel* Find(uint32_t request) const { return by_request_[request].get(); }
  template <typename Visit>
  void ForEach(Visit&& visit) {
    for (const auto& channel : by_request_) {
      if (channel != nullptr) {
        visit(*channel);
      }
    }
  }
  // kOk: the request is matched, and no start of it is under way or enqueued.
  Status CheckIdle(uint32_t request) const;

  // Starts a matched request that is idle, as the rank. Where both ends have started now, moves the
  // bytes.
  ErrorCode Start(Channel& channel);
  // Prepares a start of such a request that a device makes, through a ring: nothing moves before.
  // First: kUnsupported for pairs inside a node, and receives into cells; kInvalidBuffer where the
  // device's message would not be the window's.
  static Status CheckArm(const Channel& channel);
  void Arm(Channel& channel);
  // Whether the message of the last start is over: then *error says how. A received one is in the
  // buffer.
  bool IsOver(Channel& channel, ErrorCode* error);
  // Between IsOver and the next start nothing of the channel is under way.
  bool any_started() const { return started_.load(std::memory_order_relaxed) != 0; }
  void NoteOver() { started_.fetch_sub(1, std::memory_order_relaxed); }

  // The request is freed: takes it back from the daemon; nobody touches its memory any more. What
  // streams may look at still is handed to `keep` instead of being freed; to FreeBlock, later.
  using Keep = std::function<void(void* block)>;
  void Release(uint32_t request, const Keep& keep);
  void FreeBlock(void* block);
  // Any thread: all that is under way, and will be, ends with that.
  void FailAll(ErrorCode error);
  // Takes it back from the daemon, which tells the other end: no start has an effect any more. kOk:
  // nor does the daemon look at the end any more.
  Status Withdraw(Channel& channel);
  // The two ends part: the daemon tells the other one.
  void Abandon(Channel& channel, ErrorCode error);
  void RingDaemon() const { parts_.ring_daemon(); }
  // Of a start inside the node.
  void Count(const Channel& channel, shm::Statistic mover) {
    if (channel.is_send) {
      parts_.statistics.AddShared(mover);
    }
  }
  SharedStarts& shared_starts() { return shared_starts_; }
  // Before a stream starts a message inside the node: its device may do it alone.
  void LetDevicesReach(Channel& channel);
  // Before a start: what the other end will read.
  ErrorCode Fill(Channel& channel);

 private:
  using Kind = std::tuple<bool, uint32_t, int32_t, int32_t>;  // send, context, peer, tag

  StatusOr<std::unique_ptr<Channel>> Make(uint32_t request);
  void FreeBlocks(const Channel& channel, const Keep& keep);
  ErrorCode MapPeer(Channel& channel);
  ErrorCode Copy(const ChannelMemory& to, const ChannelMemory& from, uint64_t bytes) const;
  ErrorCode StartInNode(Channel& channel);
  ErrorCode Move(Channel& channel);
  bool Help(Channel& channel) const;
  void WakePeer(const Channel& channel) const;
  bool IsLocal(uint32_t rank) const { return parts_.peers->by_rank[rank].local; }

  Parts parts_;
  std::mutex mutex_;
  std::map<Kind, uint64_t> made_;
  std::vector<uint64_t> ordinals_;  // by request
  std::vector<std::unique_ptr<Channel>> by_request_;
  std::atomic<uint32_t> started_{0};  // by the rank, and not over
  ChannelBlocks blocks_;
  SharedStarts shared_starts_;
};

}  // namespace ferry::client
