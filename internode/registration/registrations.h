// Registers ranks' memory with the NIC when it is first needed between nodes, and keeps it
// registered for the next time.
//
// A user of a range of a region holds a Claim on it. A range that the NIC knows is claimed at once
// (registration_cache.h); else the registrar's thread pins it, while its claim waits. Where the
// limits are reached, the ranges unused for longest go, but never claimed ones. If all is claimed,
// or half of it for peers, new claims wait, in the order of asking, and fail after the time-out.
//
// A region of up to `piece_bytes` is registered whole. Of a longer one, the aligned pieces that the
// range touches are registered, as one registration: the peer gets one key for it.
//
// A region's end (TryRetire) takes all of it out of the cache before its memory goes, and keeps the
// memory mapped until the NIC has let go of it. A new region at the same address never reuses its
// entries.
//
// Calling thread: the progress thread, but for Statistics. Does not block.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>

#include "common/error_code.h"
#include "internode/registration/registration_cache.h"
#include "transports/api/transport.h"

namespace ferry::progress {

// Memory of a rank, as its home (internode/delivery/home.h) has described it.
struct ClaimableRegion {
  std::byte* base = nullptr;  // null: only streams reach it
  uint64_t size_bytes = 0;
  MemoryIdentity identity;
  std::string name;     // "region 1 of rank 0 of job 7", for messages
  uint32_t number = 0;  // by which its rank names it
  uint64_t owner = 0;   // as PinRequest has it: the job
  bool lent = false;    // other ranks only read it
  bool by_stream = false;
  // by_stream: the daemon, or the job's worker process, copies between it and the network.
  // `device`: its address, if this process has imported it.
  bool is_staged = false;
  std::byte* device = nullptr;
  // by_stream: its address for the NIC (null: the NIC does not reach it), and its description for
  // the NIC.
  std::byte* at_nic = nullptr;
  transport::DeviceMemory for_nic;
  bool nic_refuses = false;                // it has refused the memory, and is not asked again
  std::shared_ptr<const void> keep_alive;  // keeps it mapped; null if the home sees to that
  // As PinRequest has it, for any part of the region; may be empty.
  std::function<StatusOr<std::unique_ptr<transport::Registration>>(std::byte* base, uint64_t bytes)>
      pin = {};

  bool IsInside(uint64_t offset, uint64_t bytes) const {
    return offset <= size_bytes && bytes <= size_bytes - offset;
  }
  // The region's first address for the NIC.
  std::byte* begin() const { return by_stream ? at_nic : base; }
};

class Registrations;

// The use of registered memory, or the wait for it. While it is held, the memory stays registered.
class Claim {
 public:
  Claim() = default;
  Claim(Claim&& other) noexcept;
  Claim& operator=(Claim&& other) noexcept;
  ~Claim() { Drop(); }

  bool held() const;
  // Returns true if the memory is on its way to being held: it waits for room, or is being pinned.
  bool waiting() const;
  // Returns true if it waits for other claims to be dropped.
  bool wants_room() const { return ticket_ != 0; }
  // Names the thing that it waits for, in words for users; null if it does not wait.
  const char* wants() const;
  uint64_t since_ns() const { return since_ns_; }  // waiting: since when

  // The registration that is held.
  transport::RegionHandle handle() const { return entry_->pinned.region().handle; }
  uint64_t key() const { return entry_->pinned.region().key; }
  uint64_t RemoteAddress(const std::byte* address) const {
    return entry_->pinned.region().remote_base +
           (reinterpret_cast<uintptr_t>(address) - entry_->begin);
  }

  void Drop();
  // Drops the claim, but keeps the memory registered for a while: a peer that was told the key may
  // use it still.
  void DropLater();

 private:
  friend class Registrations;
  void Forget();

  Registrations* owner_ = nullptr;  // null: empty
  RegistrationCache::Entry* entry_ = nullptr;
  uint64_t ticket_ = 0;  // not 0: waits for room
  UseFor use_ = UseFor::kTransfer;
  ErrorCode refusal_ = ErrorCode::kOk;
  // The range that it was made for.
  uintptr_t begin_ = 0;
  uintptr_t end_ = 0;
  MemoryIdentity identity_;
  uint64_t since_ns_ = 0;
};

struct RegistrationOptions {
  RegistrationCache::Limits limits;
  uint64_t piece_bytes = 64ULL << 20;
  // How long to wait for room, and for peers that may still use memory that they were told of.
  uint64_t timeout_ns = 10'000'000'000;
  // Called, on the progress thread, with words about memory that could not be registered. May be
  // empty.
  std::function<void(const std::string& text)> on_refused;
};

class Registrations {
 public:
  // The registrar outlives all calls, but not this, which is destroyed after the transport (see
  // PinnedMemory). Outlives all claims.
  Registrations(Registrar& registrar, const RegistrationOptions& options);

  // Has `claim` hold [offset, offset + bytes) of the region, which contains it and is not retired.
  // kOk: held. kWouldBlock: ask again with the same claim, after changes() has changed or when the
  // deadlines are checked. kLimitExceeded: the limits do not allow it, or nothing became free in
  // time; any other code is the NIC's. A claim for another range is dropped first; one that was
  // refused returns its refusal until it is dropped.
  ErrorCode Hold(const ClaimableRegion& region, uint64_t offset, uint64_t bytes, UseFor use,
                 uint64_t now_ns, Claim* claim);

  // Holds as Hold does, for memory whose data can move by a staging block, too: does not wait for
  // room (kLimitExceeded), and drops a claim that was refused.
  ErrorCode TryHold(const ClaimableRegion& region, uint64_t offset, uint64_t bytes, UseFor use,
                    uint64_t now_ns, Claim* claim);

  // Holds device memory as TryHold does: kUnsupported where the NIC does not reach it.
  ErrorCode HoldDevice(ClaimableRegion& region, uint64_t offset, uint64_t bytes, UseFor use,
                       uint64_t now_ns, Claim* claim);

  // Takes a region out of use for good; no part of it may be held or waited for any more, but by
  // claims that were dropped later. True once nothing here uses it: call again until then. Memory
  // that peers may use still, and from the deadline on memory that the NIC does not let go of, is
  // kept mapped, and registered, for them. `unpinned` (may be null) is let go of when the NIC has
  // unpinned all the rest.
  bool TryRetire(const ClaimableRegion& region, uint64_t now_ns, uint64_t deadline_ns,
                 const std::shared_ptr<UnpinSignal>& unpinned);

  // A part of a region that stays has gone, or is other memory now: its registrations cannot be
  // found any more. Each is unpinned before more is pinned, unless it is in use.
  void Forget(const ClaimableRegion& region, uintptr_t begin, uintptr_t end);

  // Called once in a turn: releases entries that are not used any more and cannot be found.
  void Advance(uint64_t now_ns);
  // Releases the same entries, when the deadlines are checked.
  void Sweep(uint64_t now_ns);
  // Returns true if Sweep will have something to do.
  bool any_leaving() const { return cache_.any_unlisted(); }

  // Changes when a claim that waits may have come further.
  uint64_t changes() const { return changes_; }
  // Any thread.
  RegistrationStatistics Statistics() const;
  // The NIC's words when it last refused device memory; empty: it has not.
  const std::string& device_refusal() const { return device_refusal_; }

 private:
  friend class Claim;
  using Entry = RegistrationCache::Entry;
  struct Range {
    uintptr_t begin;
    uintptr_t end;
    uint64_t bytes() const { return end - begin; }
  };

  ErrorCode Resume(Claim* claim);
  std::set<uint64_t>& TicketsOf(const Claim& claim) {
    return tickets_[static_cast<size_t>(claim.use_)];
  }
  ErrorCode AskForRoom(const ClaimableRegion& region, const Entry* entry, uint64_t bytes,
                       uint64_t now_ns, Claim* claim);
  ErrorCode Refuse(const ClaimableRegion& region, ErrorCode code, const std::string& why,
                   Claim* claim);
  Range RangeFor(const ClaimableRegion& region, uint64_t offset, uint64_t bytes, UseFor use) const;
  void Pin(const ClaimableRegion& region, Entry* entry);
  void OnPinned(Entry* entry);
  void Unuse(Claim* claim, uint64_t not_before_ns);
  void ReturnTicket(Claim* claim);

  Registrar& registrar_;
  const RegistrationOptions options_;
  RegistrationCache cache_;
  std::array<std::set<uint64_t>, 2> tickets_;  // by UseFor: of claims that wait for room, in order
  uint64_t last_ticket_ = 0;
  uint64_t now_ns_ = 0;
  uint64_t changes_ = 0;
  WatchedCount refusals_, waiting_;
  WatchedCount device_refusals_;
  std::string device_refusal_;
  bool must_sweep_ = false;
};

}  // namespace ferry::progress
