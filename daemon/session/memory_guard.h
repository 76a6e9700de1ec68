// A last line of defence: a page of a rank's memory that has vanished under us ends that rank's
// session, and not the daemon.
//
// Mapped memory was checked so that no page of it can vanish (shm/segment.h). Still a page may
// be poisoned by the hardware, and where memory may not be overcommitted (vm.overcommit_memory=2) a
// page never touched before may not be had: SIGBUS, for whichever thread of ours touches it. The
// handler puts an empty page there, so that the thread goes on, with zeros for what is lost, and
// tells the watch that the mapping belongs to.
//
// Any thread. A thread that touches ranks' memory must not block SIGBUS.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/status.h"
#include "common/unique_fd.h"
#include "shm/segment.h"

namespace ferry::daemon {

// The rank whose memory is mapped.
struct MemoryOwner {
  std::string job_id;
  uint32_t rank = 0;
};

// Learns of what vanishes. Outlives nothing: mappings that are still guarded at its end are guarded
// on, and nobody is told.
class MemoryWatch {
 public:
  // The first one of the process takes the signal; signals of other memory go to the earlier
  // handler.
  MemoryWatch();
  ~MemoryWatch();
  MemoryWatch(const MemoryWatch&) = delete;
  MemoryWatch& operator=(const MemoryWatch&) = delete;

  // Readable when there is something to take.
  int fd() const { return event_.get(); }
  // The owners of mappings of which something has vanished since it was last asked.
  std::vector<MemoryOwner> TakeVanished();

  // From now on, until Forget.
  void Guard(const shm::Mapping& mapping, const MemoryOwner& owner);
  // Before it is unmapped. Nothing if it was never guarded.
  static void Forget(const shm::Mapping& mapping);

 private:
  UniqueFd event_;
};

}  // namespace ferry::daemon
