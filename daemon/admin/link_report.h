// Tells people of direct links: what the books know of them, and how the ranks' messages go.
//
// Thread: the control thread; never blocks. Words of shared memory as in rank_view.h.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>

#include "daemon/jobs/job_registry.h"
#include "proto/control.pb.h"

namespace ferry::daemon {

// Of one user only if `uid` names one.
void ReportLinks(const JobRegistry& registry, std::optional<uid_t> uid, uint64_t now_ns,
                 control::LinksReply* reply);

}  // namespace ferry::daemon
