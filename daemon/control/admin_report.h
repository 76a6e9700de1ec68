// What ferryctl shows, collected from jobs and from the shared memory of their ranks.
//
// Thread: the control thread; never blocks. Words of shared memory are read once each, with relaxed
// loads, and bounded by what was checked at attach: a rank can make its own lines wrong, nothing
// else.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "common/status.h"
#include "daemon/control/job_registry.h"
#include "daemon/plane/data_plane.h"
#include "proto/control.pb.h"

namespace ferry::daemon {

// Jobs, sessions and regions, of one user only if `uid` names one; the rest of the reply is the
// caller's.
void ReportStatus(const JobRegistry& registry, std::optional<uid_t> uid,
                  control::StatusReply* reply);
// Likewise.
void ReportSessions(const JobRegistry& registry, std::optional<uid_t> uid,
                    const DataPlane& data_plane, control::SessionsReply* reply);
// Likewise. Empty id: all jobs; -1: all ranks. kNotFound if asked for one that is not here.
Status ReportCounters(const JobRegistry& registry, std::optional<uid_t> uid,
                      const control::CountersRequest& request, control::CountersReply* reply);
// What a daemon that drains waits for: jobs whose launcher is there, or ranks of which are here.
struct RunningWork {
  uint64_t ranks = 0;  // here
  uint32_t jobs = 0;
};
RunningWork CountRunning(const JobRegistry& registry);
// What the daemon itself uses: CPU time and memory.
void ReportProcess(control::StatusReply* reply);
void ReportRegistrations(const RegistrationStatistics& statistics,
                         control::RegistrationStatus* status);
void ReportNic(const NicStatistics& statistics, control::NicStatus* nic);

}  // namespace ferry::daemon
