// The contents of a metrics page, as plain numbers of one moment. Filled by the control thread
// (daemon/admin/admin_report.h), turned into Prometheus' families by metrics_page.h.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "daemon/plane/data_plane.h"
#include "shm/counters.h"
#include "shm/histograms.h"

namespace ferry::daemon {

// The things that ranks hold at the moment.
struct LoadSample {
  uint64_t sessions = 0;
  uint64_t regions = 0;
  uint64_t region_bytes = 0;
  uint64_t unfinished_requests = 0;
  uint64_t posted_receives = 0;
  uint64_t unexpected_messages = 0;
  uint64_t queued_sends = 0;
  uint64_t credits_out = 0;
  uint64_t direct_links = 0;
};

struct JobSample {
  std::string id;
  uid_t uid = 0;     // its owner
  std::string name;  // as JobSpec has these three
  std::string program;
  std::string slurm_id;
  shm::Tally tally;  // of its ranks here, those that have ended included
  LoadSample load;
  shm::Histograms histograms;  // likewise
  double rank_seconds = 0;     // for which they were attached, all together
};

struct PeerSample {
  std::string name;
  bool up = false;
  double silent_seconds = 0;
};

struct ProcessSample {
  double cpu_seconds = 0;
  double start_time_seconds = 0;  // since 1970
  uint64_t resident_bytes = 0;
  uint64_t open_files = 0;
  uint64_t max_files = 0;
};

struct MetricsSample {
  std::string node_name;
  bool draining = false;
  uint64_t jobs_created = 0;
  uint64_t ranks_attached = 0;
  uint64_t ranks_died = 0;
  shm::Tally tally;            // of all ranks since the daemon's start
  shm::Histograms histograms;  // likewise
  double rank_seconds = 0;
  std::vector<JobSample> jobs;
  std::vector<PeerSample> peers;
  std::vector<NicStatistics> nics;  // 1 or more
  RegistrationStatistics registered;
  TurnTimes turns;
  ProcessSample process;
};

}  // namespace ferry::daemon
