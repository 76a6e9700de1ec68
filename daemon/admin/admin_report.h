// Collects the numbers that ferryctl and the metrics page show, from jobs and from the shared
// memory of their ranks.
//
// Thread: the control thread; never blocks. Words of shared memory are read once each, with relaxed
// loads, and bounded by limits that were checked at attach: a rank can make its own lines wrong,
// and no others.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "common/status.h"
#include "daemon/jobs/job_registry.h"
#include "daemon/metrics/metrics_sample.h"
#include "daemon/plane/data_plane.h"
#include "proto/control.pb.h"

namespace ferry::daemon {

// Fills in, for a scrape, jobs, ranks and their sums; the caller fills in the rest of the sample.
void FillMetrics(const JobRegistry& registry, MetricsSample* sample);
void FillPeers(const std::vector<control::PeerStatus>& peers, MetricsSample* sample);
// Returns CPU time, memory and descriptors of this process. Any thread.
ProcessSample ReadProcess();

// Reports jobs, sessions and regions, only of one user if `uid` names one; the caller fills in the
// rest of the reply.
void ReportStatus(const JobRegistry& registry, std::optional<uid_t> uid,
                  control::StatusReply* reply);
// Reports sessions, only of one user if `uid` names one.
void ReportSessions(const JobRegistry& registry, std::optional<uid_t> uid,
                    const DataPlane& data_plane, control::SessionsReply* reply);
// Reports counters, only of one user if `uid` names one. Empty id: all jobs; -1: all ranks.
// kNotFound if the request names a job or rank that is not here.
Status ReportCounters(const JobRegistry& registry, std::optional<uid_t> uid,
                      const control::CountersRequest& request, control::CountersReply* reply);
// The work that a draining daemon waits for: jobs that have a launcher here, or ranks.
struct RunningWork {
  uint64_t ranks = 0;  // here
  uint32_t jobs = 0;
};
RunningWork CountRunning(const JobRegistry& registry);
// Reports the CPU time and the memory that the daemon itself uses.
void ReportProcess(control::StatusReply* reply);
void ReportRegistrations(const RegistrationStatistics& statistics,
                         control::RegistrationStatus* status);
void ReportNic(const NicStatistics& statistics, control::NicStatus* nic);

}  // namespace ferry::daemon
