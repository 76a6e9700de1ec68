// The way that the operations with each rank of another node take: by the daemons, or by a direct
// link to it. It changes only when no operation with that rank is under way, so a fence, a quiet or
// a signal never spans both.
//
// Calling thread: one at a time (RemoteOperations locks, where several may call). Nothing blocks.
#pragma once

#include <cstdint>

#include "client/api/one_sided.h"
#include "client/p2p/progress.h"
#include "common/zeroed_array.h"
#include "engine/engine_options.h"

namespace ferry::client {

class OperationWays {
 public:
  explicit OperationWays(Progress* progress)
      : progress_(*progress), ways_(progress->view().job_size) {}

  // The core that the operations with the rank go to. Of no interest where no rank has links.
  engine::Core CoreOf(uint32_t rank) const { return ways_[rank].core; }
  // Returns true if an operation has entered and not left.
  bool IsEntered(uint32_t rank) const { return ways_[rank].entered != 0; }
  // Has an operation on that place take the way to its rank; each that enters is to Leave, once all
  // its commands are pushed. False: another way would be right, and operations take the present one
  // still (`is_quiet()` is false), or the daemons judge a lost link. `by_daemon`: only ferryd can
  // carry the operation out.
  template <typename IsQuiet>
  bool TryEnter(const RemoteAddress& place, bool by_daemon, IsQuiet&& is_quiet) {
    Way& way = ways_[place.rank];
    const shm::PeerPath path = progress_.paths().PathTo(place.rank);
    // Operations on memory that only streams reach go to the daemons, those on memory that the
    // program exposes to links.
    const bool by_link =
        path == shm::PeerPath::kLink && !by_daemon && (place.segment & kSegmentByStream) == 0;
    const engine::Core wanted = by_link ? engine::Core::kLink : engine::Core::kDaemon;
    if (path == shm::PeerPath::kBroken) {
      return false;
    }
    if (wanted != way.core && is_quiet()) {
      way.core = wanted;
    }
    if (way.core == engine::Core::kDaemon && (place.segment & kSegmentPrivate) != 0) {
      return false;
    }
    if (way.core == engine::Core::kLink && (!by_link || !progress_.TryHoldLink(place.rank))) {
      return false;
    }
    ++way.entered;
    return true;
  }
  void Leave(uint32_t rank) {
    Way& way = ways_[rank];
    --way.entered;
    if (way.core == engine::Core::kLink) {
      progress_.LetGoOfLink(rank);
    }
  }

 private:
  struct Way {
    engine::Core core = engine::Core::kDaemon;
    uint32_t entered = 0;
  };

  Progress& progress_;
  ZeroedArray<Way> ways_;  // by rank
};

}  // namespace ferry::client
