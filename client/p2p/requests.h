// The requests of a rank, from the slot that describes one to its completion: which memory other
// ranks and the daemon read or write for it, the rank's own part in moving large messages, and what
// its end means.
//
// Where they cannot reach a request's buffer, or reach it slowly, they get a bounce buffer of it
// (bounce_buffers.h).
//
// Calling thread: any that the thread level allows. Start blocks while it copies into a bounce
// buffer, and the first call that needs a peer's inbox, or the heap, blocks on the daemon.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "client/api/front_end.h"
#include "client/memory/failure_words.h"
#include "client/memory/memory.h"
#include "client/memory/peer_memory.h"
#include "client/p2p/bounce_buffers.h"
#include "client/p2p/offloads.h"
#include "client/p2p/progress.h"
#include "client/p2p/request_pool.h"
#include "engine/request_end.h"
#include "shm/counters.h"

namespace ferry::client {

class Requests {
 public:
  struct Parts {  // all outlive it
    Progress* progress;
    RequestPool* pool;
    Memory* memory;
    PeerMemory* peer_memory;
    Offloads* offloads;
    shm::Statistics statistics;
    std::function<Status(uint32_t rank)> map_inbox;
    bool private_reachable;  // others may reach this rank's private memory
    uint64_t eager_max_bytes;
    uint64_t one_block_bytes;  // ferryd does not cut device messages up to this size
    uint64_t chunk_bytes;      // of copies inside the node; larger messages are worth help
  };
  explicit Requests(Parts parts)
      : parts_(std::move(parts)),
        progress_(*parts_.progress),
        bounce_buffers_({.progress = parts_.progress,
                         .memory = parts_.memory,
                         .offloads = parts_.offloads,
                         .private_reachable = parts_.private_reachable,
                         .eager_max_bytes = parts_.eager_max_bytes,
                         .one_block_bytes = parts_.one_block_bytes}),
        out_of_reach_(std::make_unique<std::atomic<uint8_t>[]>(progress_.view().job_size)) {}
  Requests(const Requests&) = delete;
  Requests& operator=(const Requests&) = delete;

  bool is_private_reachable() const { return bounce_buffers_.is_private_reachable(); }
  RequestPool& pool() const { return *parts_.pool; }
  shm::RequestLayout& Slot(uint32_t request) const { return parts_.pool->Slot(request); }

  // ---- Beginning -------------------------------------------------------------------------------
  // Returns true if a send needs none of the checks of CheckSend: its memory is no device memory
  // that only streams reach, and no buffer is offloaded.
  bool IsPlainSend(const Message& message) const {
    return parts_.memory->IsPlain(message.buffer) && !parts_.offloads->any();
  }
  // Checks the buffer of a receive. Returns kOk or kInvalidBuffer.
  ErrorCode CheckReceive(const Message& message) const {
    return parts_.memory->regions().addresses().IsPlain(message.buffer) ? ErrorCode::kOk
                                                                        : CheckBuffer(message);
  }
  // Checks the buffer of a send as CheckReceive does, and points the message to the offloaded copy
  // of its buffer, if there is one.
  ErrorCode CheckSend(Message* message) const;
  // Returns kInvalidBuffer if a send after CheckSend would carry bytes that were never
  // synchronised.
  ErrorCode CheckSynchronized(const void* buffer, uint64_t size_bytes) const;
  // Checks a persistent request's buffer once more, before a start: also that device memory of the
  // program's own is still what it was.
  ErrorCode CheckAgain(uint32_t request) const;
  // Takes an empty slot. Errors: the rank's poison, kLimitExceeded.
  ErrorCode TakeSlot(uint32_t* request);
  // Takes a slot and fills it in. Errors of TakeSlot; kOutOfMemory: there is no heap for a bounce
  // buffer.
  ErrorCode Take(const Message& message, shm::RequestKind kind, uint32_t* request);
  // Fills in a slot of TakeSlot. If that fails, the caller gives the slot up.
  ErrorCode Fill(uint32_t request, const Message& message, shm::RequestKind kind);
  // Marks a send that is to be announced, however small it is, and from where it lies in device
  // memory. Not to a peer for which IsOutOfReach is true: that peer does not reach this rank's
  // device memory.
  void AnnounceInPlace(uint32_t request) { Slot(request).flags |= kRequestInPlace; }
  bool IsOutOfReach(uint32_t peer) const { return out_of_reach_[peer].load() != 0; }
  static bool IsInPlace(const shm::RequestLayout& slot) {
    return (shm::LoadRelaxed(slot.flags) & kRequestInPlace) != 0;
  }
  // Gives the engine the request. A caller that goes on to wait passes `later` (Progress::Perform).
  // `to_push`: starts only a send that ends without its receive (SendEngine::PushesAtOnce).
  // kWouldBlock: it would not, and was not started.
  ErrorCode Start(uint32_t request, engine::LaneSet* later = nullptr, bool to_push = false);
  // Ends a request that was not started.
  void GiveUp(uint32_t request);
  // Gives a receive that was matched to a message by a direct link host memory in place of its
  // device memory; Collect copies the data from there. Calling thread: the holder of the lease.
  // kOutOfMemory; kInvalidBuffer: there is no such receive, or it is shorter.
  ErrorCode TakeLanding(uint32_t request, uint64_t size_bytes, shm::Location* where);

  // ---- Moving ----------------------------------------------------------------------------------
  bool IsTransferring(uint32_t request) const {
    return HasState(Slot(request), shm::RequestState::kTransferring);
  }
  // Copies what this rank can copy of a transfer now, and completes the request when all is copied.
  void Copy(uint32_t request);
  // Completes a send that is transferring, if its message has arrived, or has failed to.
  void FinishIfArrived(uint32_t request);
  // Returns true if receives of large messages inside the node are matched, and to be copied.
  bool HasCopies();
  // How many large messages inside the node this rank has found to be over.
  uint64_t ended() const { return ended_.load(std::memory_order_relaxed); }
  // Copies a message that came through a lane to the application's buffer.
  void CopyLanded(uint32_t request);
  // Keeps the words that were found for an error with which the request ends.
  void NoteFound(uint32_t request, ErrorCode error) {
    if (error != ErrorCode::kOk) [[unlikely]] {
      failure_words_.NoteFound(request, shm::LoadRelaxed(Slot(request).generation), error);
    }
  }
  // Remembers transfers of receives that the calling thread may not be waiting for.
  void NoteTransfers(const engine::Effects& effects);
  // Remembers transfers of receives whose messages were there already when they started. While the
  // rank computes, the senders of large ones copy them, if they wait in the library; else the
  // worker does, which this calls.
  void HandOver(const engine::Effects& matched);
  // Copies a chunk of some remembered transfer. False: no transfer had one.
  bool HelpBackground();
  // Returns true if some transfers are not over, which ferryd's worker is to copy meanwhile.
  bool LeaveBehind() { return (progress_.threads() || !background_.empty()) && LeaveAllBehind(); }

  // ---- Ending ----------------------------------------------------------------------------------
  // Fills in the outcome of a request that is over, or that the rank's poison ends, and gives the
  // slot back, or makes it ready for another start.
  void Collect(uint32_t request, Completion* completion);

  static bool HasState(const shm::RequestLayout& slot, shm::RequestState state) {
    // Pairs with the engine's stores of the state: acquires the words that belong to it.
    return shm::LoadAcquire(slot.state) == static_cast<uint32_t>(state);
  }
  // Stores a request's new state, and publishes the words that belong to it.
  static void SetState(shm::RequestLayout& slot, shm::RequestState state) {
    shm::StoreRelease(slot.state, static_cast<uint32_t>(state));
  }
  static void Complete(shm::RequestLayout& slot, ErrorCode error) {
    shm::StoreRelaxed(slot.error, static_cast<int32_t>(error));
    SetState(slot, shm::RequestState::kComplete);
  }
  // Takes a send in place off this rank's own copies: its message has moved into a bounce buffer,
  // so this rank's streams copy nothing for it.
  void LeaveToReceiver(uint32_t request);
  // A send whose message has moved into a bounce buffer is over for the application, which collects
  // it; its slot stays taken until the message has arrived.
  static void MarkMoved(shm::RequestLayout& slot) {
    shm::FetchOr(slot.flags, kRequestMoved, std::memory_order_relaxed);
  }
  static bool IsMoved(const shm::RequestLayout& slot) {
    return (shm::LoadRelaxed(slot.flags) & kRequestMoved) != 0;
  }
  // Returns true if the application does not know a request any more. Pairs with Collect: the
  // rank's threads do not touch the slot after that.
  static bool IsUnwatched(const shm::RequestLayout& slot) {
    return (shm::LoadAcquire(slot.flags) & engine::kRequestUnwatched) != 0;
  }

 private:
  static constexpr uint32_t kRequestMoved = uint32_t{1} << 29;  // RequestLayout::flags

  ErrorCode CheckBuffer(const Message& message) const;
  void OpenLaneFor(uint32_t request);
  bool NameChunk(uint32_t request, PeerMemory::Chunk* chunk);
  bool CopyChunks(std::span<PeerMemory::Chunk> chunks);
  bool CopyChunk(uint32_t request);
  void Finish(uint32_t request, uint32_t generation, ErrorCode error);
  bool IsLeftToReceiver(uint32_t request);
  void CopyTogether(uint32_t request);
  bool HelpAnnounced();
  bool Relocate(uint32_t request);
  void FindTransfers();
  bool LeaveAllBehind();
  // Returns true if the request is still one that background_ remembers: the slot may be in use for
  // another one.
  bool IsToCopy(uint32_t request) const {
    return IsTransferring(request) && !IsSend(Slot(request));
  }
  void Forget(uint32_t request);

  Parts parts_;
  Progress& progress_;
  BounceBuffers bounce_buffers_;
  FailureWords failure_words_;
  std::atomic<uint64_t> ended_{0};
  // Looks that a sender took at a receiver that is out of the library, and the looks that it leaves
  // to a receiver that is inside before the sender helps it.
  std::atomic<uint32_t> looks_at_absent_{0};
  std::atomic<uint32_t> patient_looks_{0};
  std::mutex mutex_;
  std::vector<uint32_t> background_;  // receives that became transfers in another request's call
  std::vector<uint32_t> announced_;   // sends of device memory that receivers may not reach
  // By rank: 1 if the rank has found that it does not reach this rank's device memory.
  std::unique_ptr<std::atomic<uint8_t>[]> out_of_reach_;
};

}  // namespace ferry::client
