// Bounce buffers: blocks of the rank's heap that stand in for the buffers of requests which other
// processes cannot reach, or reach slowly. The rank itself copies from or to them.
//
// A *landing* is a bounce buffer that a receive of device memory gets only when a message by a
// direct link has been matched to it.
//
// Calling thread: any that the thread level allows; one at a time for each request. UseFor and
// CopyOut block while they copy, or while the heap asks the daemon for memory.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

#include "client/api/front_end.h"
#include "client/memory/memory.h"
#include "client/p2p/offloads.h"
#include "client/p2p/progress.h"
#include "shm/layout/request_layout.h"

namespace ferry::client {

// Flags of a slot (RequestLayout::flags) that only the rank itself knows.
inline constexpr uint32_t kRequestInPlace = uint32_t{1} << 28;  // announced, however small it is
inline constexpr uint32_t kRequestLanding = uint32_t{1} << 27;

inline bool IsSend(const shm::RequestLayout& slot) {
  return slot.kind == static_cast<uint32_t>(shm::RequestKind::kSend);
}
// Returns the buffer that the application named.
inline void* UserOf(const shm::RequestLayout& slot) {
  return reinterpret_cast<void*>(slot.user_address);
}

class BounceBuffers {
 public:
  struct Parts {  // all outlive it
    Progress* progress;
    Memory* memory;
    Offloads* offloads;
    bool private_reachable;  // others may reach this rank's private memory
    uint64_t eager_max_bytes;
    uint64_t one_block_bytes;  // ferryd does not cut device messages up to this size
  };
  explicit BounceBuffers(const Parts& parts) : parts_(parts), progress_(*parts.progress) {}
  BounceBuffers(const BounceBuffers&) = delete;
  BounceBuffers& operator=(const BounceBuffers&) = delete;

  bool is_private_reachable() const { return parts_.private_reachable; }

  // Puts a bounce buffer in place of the request's buffer, if it needs one or is better off with
  // one. kOutOfMemory: it needs one, and the heap has none.
  ErrorCode UseFor(shm::RequestLayout& slot, const Message& message, shm::RequestKind kind);
  // Copies the data that the engine, or other processes, read in place of the buffer of a send.
  ErrorCode CopyOut(shm::RequestLayout& slot) {
    if (slot.size_bytes <= shm::kInlineBytes &&
        (slot.flags & (shm::kRequestSynchronous | kRequestInPlace)) == 0) {
      slot.descriptor_kind = static_cast<uint8_t>(shm::DescriptorKind::kEager);
      return parts_.memory->CopyFrom(slot.payload, UserOf(slot), slot.size_bytes);
    }
    return (slot.flags & shm::kRequestBounceBuffer) == 0 ? ErrorCode::kOk : CopyToBlock(slot);
  }
  // Gives a matched receive a landing of `size_bytes`, which may be less than it has room for.
  // kOutOfMemory.
  ErrorCode TakeLanding(shm::RequestLayout& slot, uint64_t size_bytes, shm::Location* where);
  // Takes a landing off its request. A persistent receive uses its own memory again: the next
  // message may be longer than this one, or come by the daemons.
  void LeaveLanding(shm::RequestLayout& slot);
  // Ends the use of a bounce buffer, if the request has one: moves received data to where the
  // application wants it (`deliver`), and frees the block unless a persistent request will need it
  // again. Errors of the copy.
  ErrorCode End(shm::RequestLayout& slot, bool deliver);

 private:
  uint64_t DirectMax(const Message& message, shm::RequestKind kind) const;
  static uint64_t LocalMax(const Message& message, shm::RequestKind kind);
  bool IsOutOfOthersReach(const void* buffer, uint64_t size_bytes) const;
  bool WantsForPrivate(const Message& message, shm::RequestKind kind) const;
  bool NeedsForDevice(const shm::Location& buffer, const Message& message,
                      shm::RequestKind kind) const;
  bool WantsForDevice(const shm::Location& buffer, const Message& message,
                      shm::RequestKind kind) const;
  std::byte* BlockOf(const shm::RequestLayout& slot) const;
  ErrorCode CopyToBlock(const shm::RequestLayout& slot);
  void FreeLanding(const shm::RequestLayout& slot);

  const Parts parts_;
  Progress& progress_;
  std::atomic<bool> has_landed_long_{false};  // a long message has come by a link
  std::mutex landings_mutex_;
  std::map<uint64_t, std::unique_ptr<std::byte[]>> landings_;  // outside the heap, by address
};

}  // namespace ferry::client
