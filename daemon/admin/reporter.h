// Reports on a daemon: everything to an administrator, and to a user what concerns the user's own
// jobs, but nothing of other users' jobs, ranks and processes.
//
// Calling thread: any but the control thread, which the Reporter asks; blocks for as long as that
// takes, and FillWhy for as long as other daemons take to answer.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "common/status.h"
#include "daemon/admin/why.h"
#include "daemon/jobs/job_registry.h"
#include "daemon/peers/peer_links.h"
#include "daemon/plane/control_loop.h"
#include "daemon/plane/data_plane.h"
#include "proto/control.pb.h"

namespace ferry::daemon {

// The user who asks; nothing for an administrator.
using Viewer = std::optional<uid_t>;

// All must outlive the Reporter, and the loop must run until the last call to the Reporter has
// returned.
struct ReporterContext {
  ControlLoop& loop;
  JobRegistry& registry;
  PeerLinks& links;
  DataPlane& data_plane;
  std::string run_directory;
  std::function<control::GpusReply()> gpus;  // may be empty
  std::string metrics_address;               // empty: none
};

class Reporter {
 public:
  explicit Reporter(ReporterContext context);

  void FillStatus(Viewer viewer, control::StatusReply* reply);
  void FillSessions(Viewer viewer, control::SessionsReply* reply);
  // kNotFound: the request names a rank that is not here.
  Status FillCounters(Viewer viewer, const control::CountersRequest& request,
                      control::CountersReply* reply);
  void FillLinks(Viewer viewer, control::LinksReply* reply);
  // Errors as ReportWhy.
  Status FillWhy(Viewer viewer, const control::WhyRequest& request, control::WhyReply* reply);
  // As SendJobProfile.
  Status SendProfile(Viewer viewer, const control::JobProfileRequest& request,
                     const std::function<bool(const control::JobProfilePart&)>& write);
  // FillNics and FillGpus answer administrators and users alike.
  void FillNics(control::NicsReply* reply);
  void FillGpus(control::GpusReply* reply);

 private:
  ReporterContext context_;
  const uint64_t started_ns_;
  QuietLog quiet_;  // on the control thread
};

}  // namespace ferry::daemon
