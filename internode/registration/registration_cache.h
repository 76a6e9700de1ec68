// Knows which memory the NIC has registered, by address: finds the entry that covers a range, and
// selects the entries that are to go when there is no room for more.
//
// An entry is one registration of [begin, end) of the daemon's own addresses. Entries may overlap,
// but no one that can be found lies within another: so they are in the same order by their
// beginnings and by their ends, and of those that begin at or before an address the last one
// reaches farthest. A lookup is one binary search, without a lock and without an allocation.
//
// An entry names the memory it was made for. An entry that is found for other memory at its address
// is never returned: it is stale, and cannot be found from then on.
//
// Entries in use never go. The others go in the order in which they were last used.
//
// Memory that a peer was told of is in use until the peer answers, which it may do only when
// another transfer of ours has gone through. So only half of what the limits allow may be in use
// for peers: transfers, which end by themselves, always find room in the end.
//
// Calling thread: the owner's, for every call but FillStatistics. Does not block.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "common/error_code.h"
#include "internode/registration/pinned_memory.h"
#include "internode/registration/registration_statistics.h"

namespace ferry::progress {

// Which memory lies at an address. Two that are equal name the same memory.
struct MemoryIdentity {
  uint64_t region = 0;      // never given to another region of this daemon
  uint64_t allocation = 0;  // the device allocation's own; 0 for host memory
  bool operator==(const MemoryIdentity&) const = default;
};

enum class UseFor {
  kTransfer,  // that ends by itself
  kPeer,      // which may take as long as it likes
};

class RegistrationCache {
 public:
  // 0: no limit.
  struct Limits {
    uint64_t entries = 0;
    uint64_t bytes = 0;
  };

  struct Entry {
    enum class State : uint8_t { kPinning, kReady, kFailed };

    uintptr_t begin = 0;
    uintptr_t end = 0;
    MemoryIdentity identity;
    State state = State::kPinning;
    bool listed = false;               // can be found
    uint32_t peers = 0;                // of the users
    uint32_t users = 0;                // that keep it registered
    uint64_t not_before_ns = 0;        // a remote peer may use it until then
    ErrorCode error = ErrorCode::kOk;  // kFailed

    std::string name;                       // for messages
    bool is_device = false;                 // memory of a device
    PinnedMemory pinned;                    // kReady: it is pinned
    std::shared_ptr<UnpinSignal> unpinned;  // of those who wait for its end; may be null

    uint64_t bytes() const { return end - begin; }

   private:
    friend class RegistrationCache;
    std::list<Entry>::iterator self_;
  };

  explicit RegistrationCache(const Limits& limits) : limits_(limits) {}
  RegistrationCache(const RegistrationCache&) = delete;
  RegistrationCache& operator=(const RegistrationCache&) = delete;

  // Returns the entry that covers [begin, end) of that memory, in any state; null if there is none.
  Entry* Find(uintptr_t begin, uintptr_t end, const MemoryIdentity& identity);
  // Counts a lookup, once for each need.
  void Count(bool hit) { (hit ? hits_ : misses_).Add(1); }

  // Adds an entry, in state kPinning and without users, after Find has found none for that range.
  // Entries within it cannot be found any more: this one serves in their place.
  Entry* Insert(uintptr_t begin, uintptr_t end, const MemoryIdentity& identity);
  // Notes how the pinning has ended. An entry whose pinning failed cannot be found any more.
  void SetReady(Entry* entry);
  void SetFailed(Entry* entry, ErrorCode error);
  void Use(Entry* entry, UseFor use);
  // Removes one user; after the last one the entry is the newest of those that may go.
  void Unuse(Entry* entry, UseFor use);
  // Makes the entry impossible to find; it counts, and stays, until it is erased.
  void Unlist(Entry* entry);
  // Unlists all entries of that memory in [begin, end).
  void UnlistAll(uintptr_t begin, uintptr_t end, const MemoryIdentity& identity);
  void Erase(Entry* entry);

  // Returns true if so many bytes could ever fit; if not, do not ask for room.
  bool CanHold(uint64_t bytes, UseFor use) const;
  // Returns true if there may be one more use: of `entry`, or, if that is null, of a new one of so
  // many bytes.
  bool MayUse(const Entry* entry, uint64_t bytes, UseFor use) const;
  bool HasRoom(uint64_t bytes) const;
  // Offers the entries that are not in use to release(entry), oldest first, until there is room.
  // Entries for which it returns true are evicted (and erased here); the others stay. Returns true
  // if there is room.
  template <typename Release>
  bool MakeRoom(uint64_t bytes, uint64_t now_ns, Release&& release) {
    for (auto next = idle_.begin(); !HasRoom(bytes) && next != idle_.end();) {
      Entry& entry = *next++;
      if (entry.not_before_ns <= now_ns && release(entry)) {
        evictions_.Add(1);
        Erase(&entry);
      }
    }
    return HasRoom(bytes);
  }

  // Calls visit(entry) for each entry that cannot be found any more; it may erase the one it is
  // given.
  template <typename Visitor>
  void ForEachUnlisted(Visitor&& visit) {
    for (auto next = unlisted_.begin(); next != unlisted_.end();) {
      visit(*next++);
    }
  }
  bool any_unlisted() const { return !unlisted_.empty(); }

  uint64_t entries() const { return entries_.value(); }
  uint64_t bytes() const { return bytes_.value(); }
  const Limits& limits() const { return limits_; }
  // Fills in the numbers that the cache knows. Any thread.
  void FillStatistics(RegistrationStatistics* statistics) const;

 private:
  // The range of an entry, beside the entries, so that a search touches little memory.
  struct Interval {
    uintptr_t begin;
    uintptr_t end;
    Entry* entry;
  };
  // Returns the first interval that begins behind `address`.
  std::vector<Interval>::iterator FirstBehind(uintptr_t address);
  void Unlist(std::vector<Interval>::iterator first, std::vector<Interval>::iterator last);

  const Limits limits_;
  uint64_t peer_entries_ = 0;  // in use for peers
  uint64_t peer_bytes_ = 0;
  WatchedCount hits_, misses_, evictions_, stale_, entries_, bytes_;
  std::vector<Interval> index_;  // of what is listed, by beginning (and so by end)
  // Each entry is in one of these.
  std::list<Entry> used_;  // listed; pinning, or with users
  std::list<Entry> idle_;  // listed, the oldest first
  std::list<Entry> unlisted_;
};

}  // namespace ferry::progress
