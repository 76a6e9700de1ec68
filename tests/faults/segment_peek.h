// Looks into the shared memory of a rank from outside, through the descriptors its daemon holds: so
// that a test can stop a rank at the very moment at which it holds something.
//
// One test thread. Read only.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>

#include "shm/layout/inbox_layout.h"
#include "shm/layout/session_layout.h"
#include "shm/segment.h"

namespace ferry::faults {

class SegmentPeek {
 public:
  // Finds the segments of process `rank` among the descriptors of process `daemon`. found() tells
  // whether both are there.
  SegmentPeek(pid_t daemon, pid_t rank);
  bool found() const { return session_.valid() && inbox_.valid(); }

  // The thread that holds the rank's progress lease; 0 if none, or not a thread of the rank.
  pid_t LeaseHolder() const;
  // Whether a transfer of the rank has chunks that were claimed and are not done, and none left to
  // claim: its claimant is copying.
  bool HasClaimedChunk() const;

 private:
  const shm::SessionLayout& session() const {
    return *reinterpret_cast<const shm::SessionLayout*>(session_.base());
  }
  shm::Mapping session_;
  shm::Mapping inbox_;
};

}  // namespace ferry::faults
