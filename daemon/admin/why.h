// Finds what ranks wait for, on which ranks, and where a chain of waiting ranks ends.
//
// Thread: the control thread; asks the progress thread (microseconds to milliseconds). Reads are
// bounded: see rank_view.h. Only this node's ranks can be looked into; a chain that leaves the node
// ends there and names the daemon to ask next: see reporter.h.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "common/status.h"
#include "daemon/jobs/job_registry.h"
#include "daemon/plane/data_plane.h"
#include "proto/control.pb.h"

namespace ferry::daemon {

// Remembers since when a rank has looked alike to `why`. Requests carry the time of their start,
// but a rank that computes leaves no trace of when it last called Ferry, and a clock read in every
// call would cost more than the call; so each question leaves this for the next one.
class QuietLog {
 public:
  // Returns for how many nanoseconds `fingerprint` has been seen for that rank of the job with that
  // serial.
  uint64_t Note(uint64_t job_serial, uint32_t rank, uint64_t fingerprint, uint64_t now_ns);
  // Forgets jobs that are gone.
  void Sweep(const JobRegistry& registry);

 private:
  struct Entry {
    uint64_t fingerprint;
    uint64_t since_ns;
  };
  std::map<std::pair<uint64_t, uint32_t>, Entry> entries_;
};

// Summarizes one rank, without its requests, for another node's question. kNotFound: no such job,
// or no such rank of it on this node.
Status SummarizeRank(const JobRegistry& registry, const DataPlane& data_plane,
                     const std::string& job_id, uint32_t rank, uint64_t now_ns, QuietLog* quiet,
                     control::WhyReply* reply);
// Reports the waits of a job's ranks. Errors as of SummarizeRank. If `uid` names a user, only that
// user's jobs exist.
Status ReportWhy(const JobRegistry& registry, std::optional<uid_t> uid, const DataPlane& data_plane,
                 const control::WhyRequest& request, uint64_t now_ns, QuietLog* quiet,
                 control::WhyReply* reply);

}  // namespace ferry::daemon
