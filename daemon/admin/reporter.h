// Reports on a daemon: everything to an administrator, and to a user what concerns the user's own
// jobs, but nothing of other users' jobs, ranks and processes.
//
// Calling thread: any but the control thread, which the Reporter asks; blocks for as long as that
// takes, and FillWhy for as long as other daemons take to answer.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "common/status.h"
#include "daemon/admin/why.h"
#include "daemon/jobs/job_registry.h"
#include "daemon/peers/peer_links.h"
#include "daemon/plane/control_loop.h"
#include "daemon/plane/data_plane.h"
#include "proto/control.pb.h"

namespace ferry::daemon {

// Asks about one rank of a job, wherever it is; any thread but the control thread. Blocks.
class WhyAsker {
 public:
  virtual ~WhyAsker() = default;
  // Returns the wait of the rank. kTimeout: its daemon did not answer in time.
  virtual StatusOr<control::RankWait> Ask(const std::string& job_id, uint32_t rank) = 0;
};

// Follows chains of waiting ranks from node to node: where `why` cannot see a rank here, it asks
// the daemon of the rank's node, which answers for its own ranks (service Peer, Why).
//
// Calling thread: a gRPC handler's; blocks until those daemons have answered, or one has not in
// time: from then on it asks no other daemon. The control thread goes on meanwhile.
class WhyFollower {
 public:
  explicit WhyFollower(WhyAsker* asker) : asker_(*asker) {}

  // Lengthens the chain of `wait`, and its verdict, for as long as the chain leaves a node. If a
  // daemon does not answer, that becomes a trouble of `wait`; the verdict then says where to ask.
  void Follow(const std::string& job_id, control::RankWait* wait);

 private:
  const StatusOr<control::RankWait>& Ask(const std::string& job_id, uint32_t rank);

  WhyAsker& asker_;
  uint32_t asked_ = 0;
  bool is_one_silent_ = false;
  std::map<std::pair<std::string, uint32_t>, StatusOr<control::RankWait>> answers_;
};

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
  // FillNics and FillGpus answer administrators and users alike.
  void FillNics(control::NicsReply* reply);
  void FillGpus(control::GpusReply* reply);

 private:
  ReporterContext context_;
  const uint64_t started_ns_;
  QuietLog quiet_;  // on the control thread
};

}  // namespace ferry::daemon
