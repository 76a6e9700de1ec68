// RemoteOperations: the choice between the daemons and a direct link. See remote_operations.h.
#include "client/rma/remote_operations.h"

namespace ferry::client {

// The caller of this function, and of the next two, holds the lock. Operations on memory that only
// streams reach go to the daemons, those on memory that the program exposes to links.
bool RemoteOperations::TryEnterWay(const RemoteAddress& place, bool by_daemon) {
  const uint32_t rank = place.rank;
  Way& way = ways_[rank];
  const shm::PeerPath path = progress_.paths().PathTo(rank);
  const bool by_link =
      path == shm::PeerPath::kLink && !by_daemon && (place.segment & kSegmentByStream) == 0;
  const engine::Core wanted = by_link ? engine::Core::kLink : engine::Core::kDaemon;
  if (path == shm::PeerPath::kBroken) {
    return false;  // until the daemons have parted the two
  }
  if (wanted != way.core && IsQuietWith(rank)) {
    way.core = wanted;
  }
  if (way.core == engine::Core::kDaemon && (place.segment & kSegmentPrivate) != 0) {
    return false;  // until the operations under way there are over
  }
  if (way.core == engine::Core::kLink && (!by_link || !progress_.TryHoldLink(rank))) {
    return false;
  }
  ++way.entered;
  return true;
}

void RemoteOperations::LeaveWay(uint32_t rank) {
  const auto lock = Lock();
  Way& way = ways_[rank];
  --way.entered;
  if (way.core == engine::Core::kLink) {
    progress_.LetGoOfLink(rank);
  }
}

// Returns true if no operation with that rank is under way, or about to be.
bool RemoteOperations::IsQuietWith(uint32_t rank) {
  const auto is_with = [this, rank](uint16_t place) {
    return expected_[place].is_long && expected_[place].rank == rank;
  };
  if (ways_[rank].entered != 0 || LastOver(rank) < issued_[rank]) {
    return false;
  }
  if (AnyTaken(is_with)) {
    Harvest();
  }
  return !AnyTaken(is_with);
}

// Waits until the daemon has judged a lost link: the rank hears of the loss first, and then from
// its daemon whether the other rank has died. The caller does not hold the lock.
ErrorCode RemoteOperations::Judged(uint32_t rank, ErrorCode error) {
  if (error != ErrorCode::kLinkDown || !progress_.MayHaveLinks()) {
    return error;
  }
  auto is_judged = [&] {
    // A turn that ends operations tells the engine before it gives the lease back.
    (void)progress_.UnderLease([](engine::Effects&) { return ErrorCode::kOk; });
    return progress_.PeerState(rank) != ErrorCode::kOk ||
           progress_.paths().PathTo(rank) != shm::PeerPath::kBroken;
  };
  if (!is_judged()) {
    Wait(rank, is_judged);
  }
  const ErrorCode state = progress_.PeerState(rank);
  return state != ErrorCode::kOk ? state : error;
}

}  // namespace ferry::client
