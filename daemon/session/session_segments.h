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

// Makes a session without segments. Where its memory is guarded, it stays so until it is unmapped.
std::shared_ptr<Session> MakeSession();

// Checks both segments, maps them, guarded by `watch`, and moves them into `session`; on an error
// the descriptors stay where they are. Errors: kCorrupt (not sealed, of another size, kind or rank,
// of another size than the header says), kVersionMismatch (both named).
Status AdoptSegments(UniqueFd* session_fd, uint64_t session_bytes, UniqueFd* inbox_fd,
                     uint64_t inbox_bytes, MemoryWatch& watch, Session* session);

// Maps a memfd, or as much of a lent one as the rank says, as a region of `session`, guarded by
// `watch`. If only streams reach the memory, keeps the descriptors `fd` and `dmabuf` (null: none)
// instead, which Disposal closes in the end. Errors as above; also kCorrupt: one of them is no
// handle of a device.
StatusOr<std::shared_ptr<Region>> AdoptRegion(UniqueFd* fd, UniqueFd* dmabuf,
                                              const attach::RegionRequest& request,
                                              const Session& session, MemoryWatch& watch);

// Returns true if process_vm_readv on the rank is allowed, to ferryd and so, as the uid is the
// same, to the rank's peers.
bool ProbePrivateMemory(pid_t pid, uid_t uid);

}  // namespace ferry::daemon
