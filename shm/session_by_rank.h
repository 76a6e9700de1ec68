// The parts of a session with an entry for each rank of the job, as pointers in this process.
//
// A session of a job of a million ranks has 290 MB of them. They take memory only where ranks have
// something to do with each other: so nothing loops over all ranks, but over the bits that are set.
//
// Calling thread: as each member says.
#pragma once

#include <cstddef>
#include <cstdint>

#include "common/error_code.h"
#include "shm/atomic.h"
#include "shm/layout/session_layout.h"

namespace ferry::shm {

struct SessionByRank {
  PeerWords* peers = nullptr;
  RtrBook* rtrs = nullptr;
  LinkWords* links = nullptr;
  OneSidedWords* one_sided = nullptr;
  // Ranks to which sends are queued, which are owed credit, or to whose path or direct link there
  // is something to do, now or later. Written by the lease holder, which sets a bit before it
  // commits the duty itself: so after a kill, too, no bit is missing.
  uint64_t* busy = nullptr;
  // Ranks whose PeerWords::dead was ever set. Written by StoreDead; never cleared.
  uint64_t* gone = nullptr;

  // `session` maps all that PlacesOfSession(job_size, request_limit) names.
  static SessionByRank In(std::byte* session, uint32_t job_size, uint32_t request_limit) {
    const SessionPlaces at = PlacesOfSession(job_size, request_limit);
    return {reinterpret_cast<PeerWords*>(session + at.peers),
            reinterpret_cast<RtrBook*>(session + at.rtrs),
            reinterpret_cast<LinkWords*>(session + at.links),
            reinterpret_cast<OneSidedWords*>(session + at.one_sided),
            reinterpret_cast<uint64_t*>(session + at.busy),
            reinterpret_cast<uint64_t*>(session + at.gone)};
  }

  // Tells the rank what has become of a peer; any process. The rank looks once death_epoch has
  // grown, which the caller sees to.
  void StoreDead(uint32_t rank, ErrorCode error) const {
    // Pairs with PeerEnds::DeathOf, SendEngine::CanLeave and the acquire of death_epoch.
    StoreRelease(peers[rank].dead, static_cast<uint32_t>(error));
    SetBit(gone, rank);
  }
  // As StoreDead, but keeps what has become of the peer already.
  void StoreDeadIfAlive(uint32_t rank, ErrorCode error) const {
    auto alive = static_cast<uint32_t>(ErrorCode::kOk);
    CompareExchange(peers[rank].dead, alive, static_cast<uint32_t>(error),
                    std::memory_order_release);
    SetBit(gone, rank);
  }
  // The lease holder.
  void SetBusy(uint32_t rank) const {
    uint64_t& word = busy[rank / 64];
    StoreRelaxed(word, LoadRelaxed(word) | uint64_t{1} << rank % 64);
  }
  void ClearBusy(uint32_t rank) const {
    uint64_t& word = busy[rank / 64];
    StoreRelaxed(word, LoadRelaxed(word) & ~(uint64_t{1} << rank % 64));
  }

 private:
  static void SetBit(uint64_t* bits, uint32_t rank) {
    FetchOr(bits[rank / 64], uint64_t{1} << rank % 64, std::memory_order_relaxed);
  }
};

// Calls `visit` with each rank below `job_size` whose bit is set, until it returns false; bits may
// change meanwhile, and wild ones lead nowhere.
template <typename Visitor>
void ForEachRankIn(const uint64_t* bits, uint32_t job_size, Visitor&& visit) {
  for (uint64_t first = 0; first < job_size; first += 64) {
    for (uint64_t word = LoadRelaxed(bits[first / 64]); word != 0; word &= word - 1) {
      const uint64_t rank = first + static_cast<uint64_t>(__builtin_ctzll(word));
      if (rank >= job_size || !visit(static_cast<uint32_t>(rank))) {
        return;
      }
    }
  }
}

}  // namespace ferry::shm
