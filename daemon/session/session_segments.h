// Takes over the memfds of a rank: nothing in them is trusted before it was checked, and what the
// daemon goes on using is copied out. Nothing is mapped before all sizes agree.
//
// Any thread; blocks only for mmap.
#pragma once

#include <cstdint>
#include <memory>

#include "common/status.h"
#include "common/unique_fd.h"
#include "daemon/session/memory_guard.h"
#include "daemon/session/session.h"

namespace ferry::daemon {

// A session without segments, whose memory is guarded, if it is, until it is unmapped.
std::shared_ptr<Session> MakeSession();

// Checks both segments, maps them, guarded by `watch`, and moves them into `session`; on an error
// the descriptors stay where they are. Errors: kCorrupt (not sealed, of another size, kind or rank,
// of another size than the header says), kVersionMismatch (both named).
Status AdoptSegments(UniqueFd* session_fd, uint64_t session_bytes, UniqueFd* inbox_fd,
                     uint64_t inbox_bytes, MemoryWatch& watch, Session* session);

// Maps a memfd, or of one that is lent as much as the rank says, as a region of `session`, guarded
// by `watch`, or keeps what `fd` and `dmabuf` are (null: nothing) if only streams reach the memory:
// then they are closed as Disposal does it. Errors as above; kCorrupt, too: no handle of a device.
StatusOr<std::shared_ptr<Region>> AdoptRegion(UniqueFd* fd, UniqueFd* dmabuf,
                                              const attach::RegionRequest& request,
                                              const Session& session, MemoryWatch& watch);

// Whether process_vm_readv on the rank is allowed, to us and so, as the uid is the same, to its
// peers.
bool ProbePrivateMemory(pid_t pid, uid_t uid);

}  // namespace ferry::daemon
