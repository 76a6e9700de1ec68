// The totals of a measured rank: what its calls and messages have cost, by call, communicator and
// peer. Written into shared memory as it happens, so that they outlive a rank that is killed.
//
// It hears of the calls as a CallWatcher, and of messages by NoteSent and NoteReceived. Of calls
// that lie in each other the outermost counts. Calls on files count by their files, too.
//
// Calling thread: any of the rank. Threads take turns at a lock that is held for some 20 ns.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "client/api/calls.h"
#include "client/profile/spin_lock.h"
#include "shm/layout/profile_layout.h"

namespace ferry::client {

class Profile final : public CallWatcher {
 public:
  // `layout`: zeroed memory of ProfileBytes(peers), which outlives it. `shared`: as that of Calls.
  Profile(shm::ProfileLayout* layout, uint32_t peers, const bool* shared);
  Profile(const Profile&) = delete;
  Profile& operator=(const Profile&) = delete;

  void Begin(CallNote*, bool) override {}
  void WaitBegan(CallNote* note) override;
  void End(CallNote* note, bool inner) override;

  // A message has left, or has been announced, for that rank; the call has waited so long for it
  // (0: it has not).
  void NoteSent(int32_t peer, uint64_t bytes, uint64_t waited_ns);
  // A message of that rank has come.
  void NoteReceived(int32_t source, uint64_t bytes, uint64_t waited_ns);
  // The call has waited so long for that rank to take a message that was counted as sent before.
  void NoteLateReceive(int32_t peer, uint64_t waited_ns);
  // A look for a message, or at a request, outside all waits, which found nothing.
  void NotePoll();

  // ---- Short calls (short_calls.h), while no other thread calls
  // ---------------------------------- Returns where calls of that description count, from the
  // first call on; null: nowhere.
  shm::ProfileCall* PlaceOf(const shm::CallDescription& call) { return Find(call); }
  // A call has ended, of which nothing but this is known.
  void Count(shm::ProfileCall* place, uint64_t bytes) {
    ++layout_.totals.calls;
    if (place == nullptr) [[unlikely]] {
      ++layout_.totals.unlisted_calls;
      return;
    }
    place->bytes += bytes;
    ++place->count;
  }
  // A call that has been counted was none of these.
  void TakeBack(shm::ProfileCall* place, uint64_t bytes) {
    --layout_.totals.calls;
    if (place == nullptr) {
      --layout_.totals.unlisted_calls;
      return;
    }
    place->bytes -= bytes;
    --place->count;
  }
  // The messages of such calls.
  void CountSent(int32_t peer, uint64_t bytes) {
    layout_.totals.last_poll_ns = 0;
    ++layout_.sizes.sent[PowerOf(bytes)];
    if (static_cast<uint32_t>(peer) < peer_count_) {
      ++peers_[peer].sent;
      peers_[peer].sent_bytes += bytes;
    }
  }
  void CountReceived(int32_t source, uint64_t bytes) {
    layout_.totals.last_poll_ns = 0;
    ++layout_.sizes.received[PowerOf(bytes)];
    if (static_cast<uint32_t>(source) < peer_count_) {
      ++peers_[source].received;
      peers_[source].received_bytes += bytes;
    }
  }
  // Calls that have been counted took so long.
  void AddTime(shm::ProfileCall* place, uint64_t time_ns) {
    layout_.totals.ferry_ns += time_ns;
    (place != nullptr ? place->time_ns : layout_.totals.unlisted_ns) += time_ns;
  }
  // One of them did, and ended at `now_ns`.
  void AddTimeOfOne(shm::ProfileCall* place, uint64_t time_ns, uint64_t now_ns) {
    AddTime(place, time_ns);
    layout_.totals.last_ns = std::max(layout_.totals.last_ns, now_ns);
    if (place != nullptr) {
      place->longest_ns = std::max(place->longest_ns, time_ns);
    }
  }

 private:
  static size_t PowerOf(uint64_t bytes) {
    return std::min<size_t>(static_cast<size_t>(std::bit_width(bytes)), shm::kProfilePowers - 1);
  }
  shm::ProfilePeer* PeerAt(int32_t rank) {
    return static_cast<uint32_t>(rank) < peer_count_ ? &peers_[rank] : nullptr;
  }
  void Add(const shm::CallDescription& call, uint64_t time_ns, uint64_t waited_ns);
  void AddArrival(const CallNote& note, const shm::CallDescription& call, uint64_t now_ns);
  void NameGroup(const shm::CallDescription& call);
  void AddFile(const shm::CallDescription& call, uint64_t time_ns, uint64_t waited_ns);
  shm::ProfileFile* FindFile(const char* name);
  shm::ProfileCall* Find(const shm::CallDescription& call);

  shm::ProfileLayout& layout_;
  shm::ProfilePeer* const peers_;
  const uint32_t peer_count_;
  const bool& shared_;
  SpinLock lock_;
  int last_cpu_ = -1;
};

}  // namespace ferry::client
