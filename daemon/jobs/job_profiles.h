// Keeps what the measured ranks of this node write (shm/layout/profile_layout.h): it
// stays beyond a rank's end, until its job's launcher has gone or has ended the job. Where ranks
// keep their events, so does this daemon those of its own work for their job
// (shm/layout/daemon_trace_layout.h).
//
// Nothing in the memory of a rank is trusted or mapped: it is read by pread, so that it neither
// faults nor changes under a reader, and it is sealed, so that its size is what was counted.
//
// Thread: the control thread; only ReadProfile may be called by any.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/status.h"
#include "common/unique_fd.h"
#include "daemon/plane/data_plane.h"
#include "daemon/session/session.h"
#include "shm/layout/profile_layout.h"

namespace ferry::daemon {

// In the place of a rank: the events of this daemon.
inline constexpr uint32_t kRankOfDaemon = UINT32_MAX;
// A ring of its events takes no more than that, and those of all the jobs of one user together; the
// rings of all users take four times as much as those of one.
inline constexpr uint64_t kMostDaemonTraceBytes = uint64_t{16} << 20;
inline constexpr uint64_t kMostDaemonTraceBytesOfUser = uint64_t{64} << 20;

// Of one rank, or of this daemon; several readers may share it.
struct RankProfile {
  uint32_t rank = 0;                   // kRankOfDaemon
  std::shared_ptr<const UniqueFd> fd;  // null: `refusal` says why
  uint64_t bytes = 0;
  std::string refusal;
  std::weak_ptr<const Session> session;                // while the rank lives
  std::shared_ptr<const shm::ProfileAppendix> at_end;  // of its session, once it has ended
};

class JobProfiles {
 public:
  // `most_bytes`: of all ranks of a launch together, whose programs may follow each other for ever.
  // Of all launches it keeps no more files than an eighth of those that this process may have.
  // `data_plane` outlives it, and is told to keep events; null: it is not.
  explicit JobProfiles(uint64_t most_bytes, DataPlane* data_plane = nullptr);

  // Keeps a rank's memfd. kCorrupt: it is none, is not sealed against shrinking and growing, or has
  // another size; kAlreadyExists: the rank has left one before; kLimitExceeded: its launch has left
  // too much, or there are too many files, which readers are told.
  Status Keep(const std::shared_ptr<const Session>& session, UniqueFd fd, uint64_t size_bytes);
  // Reads the session of a rank that ends a last time.
  void NoteEnd(const Session& session);
  // Forgets the launch: all its programs.
  void Drop(const std::string& launch);

  // Returns what is known of the ranks of a job, in their order, and the processor time that this
  // process had used when the first of them came. Empty: no rank of it was measured.
  struct Found {
    uid_t uid = 0;
    uint64_t cpu_us = 0;
    std::vector<std::shared_ptr<const RankProfile>> ranks;
    std::shared_ptr<const RankProfile> daemon;  // null: no rank keeps events
  };
  Found Find(const std::string& job_id) const;

 private:
  struct Job {
    uid_t uid = 0;
    uint64_t cpu_us = 0;
    std::map<uint32_t, std::shared_ptr<RankProfile>> ranks;
    std::shared_ptr<RankProfile> daemon;  // null: no rank keeps events
  };
  struct Launch {
    uint64_t bytes = 0;
    uint64_t files = 0;
    uint64_t ranks = 0;  // of all its programs
    std::map<uint32_t, Job> programs;
  };

  std::string WhyRefused(const Launch& launch, uint64_t size_bytes) const;
  std::string WhyDaemonRefused(uid_t uid, uint64_t size_bytes) const;
  void TraceDaemon(const RankProfile& first, const std::string& job_id, Launch* launch, Job* job);
  const Job* FindProgram(const std::string& job_id) const;

  const uint64_t most_bytes_;
  DataPlane* const data_plane_;
  const uint64_t most_files_;
  uint64_t files_ = 0;
  std::map<std::string, Launch> launches_;  // by id
};

// Which parts of a rank's memory are to be read: JobProfileRequest.parts.
inline constexpr uint32_t kProfilePart = 1;
inline constexpr uint32_t kTracePart = 2;
inline constexpr uint32_t kDaemonPart = 4;  // of this daemon; the others are of ranks
// Calls `take` with pieces of what the rank has written, of at most `piece_bytes`, in order; holes
// are left out, and behind the memfd of a rank comes the ProfileAppendix. Ends early where `take`
// returns false. kSystem.
using TakePiece = std::function<bool(uint64_t offset, std::string_view piece)>;
Status ReadProfile(const RankProfile& profile, uint32_t parts, size_t piece_bytes,
                   const TakePiece& take);

}  // namespace ferry::daemon
