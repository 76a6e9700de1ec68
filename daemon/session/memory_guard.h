// A last line of defence: a page of a rank's memory that vanishes while ferryd uses it ends that
// rank's session, and not the daemon.
//
// Mapped memory was checked so that no page of it can vanish (shm/segment.h). Still a page may
// be poisoned by the hardware, and where memory may not be overcommitted (vm.overcommit_memory=2) a
// page never touched before may not be had: the thread of ferryd that touches such a page gets
// SIGBUS. The handler puts an empty page there, so that the thread goes on, with zeros for what is
// lost, and tells the watch that the mapping belongs to.
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

// Learns of pages that vanish. Mappings that are still guarded when the watch is destroyed stay
// guarded, but their pages are then reported to no watch.
class MemoryWatch {
 public:
  // The first watch of the process installs the handler of SIGBUS; signals for other memory go to
  // the earlier handler.
  MemoryWatch();
  ~MemoryWatch();
  MemoryWatch(const MemoryWatch&) = delete;
  MemoryWatch& operator=(const MemoryWatch&) = delete;

  // Readable when TakeVanished has owners to return.
  int fd() const { return event_.get(); }
  // Returns the owners of mappings of which pages have vanished since the last call.
  std::vector<MemoryOwner> TakeVanished();

  // Guards the mapping from now on, until Forget.
  void Guard(const shm::Mapping& mapping, const MemoryOwner& owner);
  // Ends the guard. Call it before the mapping is unmapped. Does nothing if it was never guarded.
  static void Forget(const shm::Mapping& mapping);

 private:
  UniqueFd event_;
};

}  // namespace ferry::daemon
