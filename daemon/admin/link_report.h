// Reports direct links to users: their state in the books, and the path of the ranks' messages.
//
// Thread: the control thread; never blocks. Words of shared memory as in rank_view.h.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>

#include "daemon/jobs/job_registry.h"
#include "proto/control.pb.h"

namespace ferry::daemon {

// Reports the links, only of one user if `uid` names one.
void ReportLinks(const JobRegistry& registry, std::optional<uid_t> uid, uint64_t now_ns,
                 control::LinksReply* reply);

}  // namespace ferry::daemon
