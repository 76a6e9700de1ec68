// Looks at ranks of this node: what they do, what each waits for, and for which ranks. WaitGraph
// (why_graph.h) makes chains of that, from node to node.
//
// Thread: the control thread; asks the progress thread (microseconds to milliseconds). Reads are
// bounded: see rank_view.h.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>

#include "common/status.h"
#include "daemon/admin/quiet_log.h"
#include "daemon/jobs/job_registry.h"
#include "daemon/plane/data_plane.h"
#include "proto/control.pb.h"

namespace ferry::daemon {

using WaitPairs = google::protobuf::RepeatedPtrField<control::WaitPair>;

// Returns what this daemon knows of any rank of the job; of one that is elsewhere, where it is.
control::RankWait KnownOf(const JobRecord& job, const DataPlane& data_plane, uint32_t rank,
                          uint64_t now_ns, QuietLog* quiet);
// Looks at one rank of this node, and then at those of this node that it waits for, directly or
// not, 256 at most. kNotFound: no such job, or no such rank of it on this node.
Status LookAround(const JobRegistry& registry, const DataPlane& data_plane,
                  const std::string& job_id, uint32_t rank, uint64_t now_ns, QuietLog* quiet,
                  control::WhyReply* reply);
// Looks at ranks of this node, in their order, and at what each has for the one that waits for it.
// Errors as of LookAround; kLimitExceeded: more than 1024.
Status LookAtPairs(const JobRegistry& registry, const DataPlane& data_plane,
                   const std::string& job_id, const WaitPairs& pairs, uint64_t now_ns,
                   QuietLog* quiet, control::WhyReply* reply);
// Looks at the ranks that the request asks for, all but their chains (WaitGraph). Errors as of
// LookAround. If `uid` names a user, only that user's jobs exist.
Status ReportWhy(const JobRegistry& registry, std::optional<uid_t> uid, const DataPlane& data_plane,
                 const control::WhyRequest& request, uint64_t now_ns, QuietLog* quiet,
                 control::WhyReply* reply);

}  // namespace ferry::daemon
