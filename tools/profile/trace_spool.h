// The events of a job's measured ranks, and of their daemons, copied once from these (JobProfile)
// into a temporary file without a name, from which the timeline reads them one by one. A copy of a
// job that runs on would be another one the next time.
//
// One thread; it blocks for the daemons, and for the disk.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/status.h"
#include "common/unique_fd.h"
#include "tools/profile/fetch.h"
#include "tools/profile/timeline.h"

namespace ferry::tools {

class TraceSpool {
 public:
  // `job_size`: ranks. kSystem: there is no place for the file.
  static StatusOr<TraceSpool> Create(uint32_t job_size);

  // Adds what the daemon of a node has of the job's ranks, and of itself; that node is number
  // `node`. kNotFound: it knows no such job.
  Status Fetch(const AskProfile& ask, const std::string& job_id, uint32_t node);

  // Ranks with events.
  uint32_t count() const { return static_cast<uint32_t>(ranks_.size()); }
  // Reads the events of the `i`th of them. False: they are not such as a rank of this release
  // writes.
  bool Load(uint32_t i, TimelineRank* rank) const;
  // Why ranks have no events, as their daemons say; each reason once.
  const std::vector<std::string>& refusals() const { return refusals_; }

  // As above, of daemons, which may be of another release.
  uint32_t daemon_count() const { return static_cast<uint32_t>(daemons_.size()); }
  bool LoadDaemon(uint32_t i, TimelineDaemon* daemon) const;
  const std::vector<std::string>& daemon_refusals() const { return daemon_refusals_; }

 private:
  struct Rank {
    uint32_t rank = 0;  // of a daemon: kRankOfDaemon
    uint32_t node = 0;
    uint64_t seen_ns = 0;
    uint64_t bytes = 0;  // of its segment, in the file
    uint64_t at = 0;     // where it begins there
    bool has_ended = false;
  };

  TraceSpool(UniqueFd fd, uint32_t job_size) : fd_(std::move(fd)), job_size_(job_size) {}
  Status Keep(const Rank& rank, uint64_t offset, const std::string& piece);
  bool ReadAt(uint64_t at, void* bytes, uint64_t size_bytes) const;

  UniqueFd fd_;
  uint32_t job_size_;
  uint64_t end_ = 0;  // of the file
  std::vector<Rank> ranks_;
  std::vector<Rank> daemons_;
  std::vector<std::string> refusals_;
  std::vector<std::string> daemon_refusals_;
};

}  // namespace ferry::tools
