// Closes descriptors that other processes have passed to ferryd, and the sockets by which they
// passed them, on threads that no other thread waits for.
//
// close(2) blocks for as long as a stranger likes: a socket that lingers waits for a receiver that
// does not read, a file of a FUSE server for that server, and a Unix socket closes what lies unread
// in it. Sealed shared memory closes at once, unless ferryd is its last holder: then its pages are
// given back, which takes 0.4 s for each GiB.
//
// Two means keep ferryd from waiting so long. A socket that is closed by the exit of a thread does
// not linger (the kernel looks for PF_EXITING); so each descriptor goes to a thread with a table of
// descriptors of its own, which then exits. A close that waits for a file's server, which nothing
// cuts short, hangs a thread that does nothing else; ferryd takes no more from a user who makes too
// many of them hang.
//
// Any thread, for all members; none blocks.
#pragma once

#include <sys/types.h>

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "common/unique_fd.h"
#include "shm/segment.h"

namespace ferry::daemon {

// The kind of a descriptor that was passed to us, as far as the kernel tells it by itself (fstat
// asks a file's server).
enum class PassedKind {
  kSealedMemory,  // a memfd that cannot shrink
  kMemory,        // another file of shared memory
  kDevice,        // a device or an anonymous file (a dma-buf): drivers' handles
  kOther,         // files, directories, pipes, sockets
};
PassedKind KindOf(int fd);

class Disposal {
 public:
  // The process's only Disposal. It is never destroyed: its threads may hang when the process ends.
  static Disposal& Instance();

  // Shuts a Unix socket of ferryd's down now, and closes it soon, with all that lies unread in it.
  void CloseSocket(UniqueFd socket);
  // Closes a descriptor that ferryd has asked for and is done with.
  void Close(UniqueFd fd);
  // Unmaps memory that ferryd may have mapped, and closes its descriptor `fd`.
  void Release(shm::Mapping mapping, UniqueFd fd);
  // Closes descriptors that `sender` has passed unasked; those of sealed memory at once.
  void CloseUnasked(uid_t sender, std::vector<UniqueFd> fds);
  // Returns true if ferryd may receive descriptors from that user; false while too many that the
  // user has passed unasked cannot be closed.
  bool MayPass(uid_t sender) const;

 private:
  Disposal();
  // A descriptor to be closed, and the mapping to be unmapped before that.
  struct Ended {
    UniqueFd fd;
    shm::Mapping mapping = {};
  };

  void Undertake();
  void BurySoon(Ended ended);
  void BuryAll();
  void Bury(std::span<UniqueFd> fds);

  UniqueFd handover_;  // to the threads that exit; they share nothing else of our table
  UniqueFd receiver_;  // the other end, until they have it
  std::condition_variable undertake_;
  std::condition_variable bury_;
  mutable std::mutex mutex_;
  uint64_t to_undertake_ = 0;
  bool is_undertaker_settled_ = false;
  std::deque<Ended> queue_;
  uint32_t closers_ = 0;
  uint32_t idle_closers_ = 0;
  uint64_t taken_ns_ = 0;            // when a closer last took something
  std::map<uid_t, size_t> unasked_;  // descriptors of each user that are being closed
  size_t unasked_in_all_ = 0;
};

}  // namespace ferry::daemon
