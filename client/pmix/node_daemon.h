// The daemon of this node, as seen by the rank that starts a job there: the node's lowest rank.
#pragma once

#include <memory>
#include <string>

#include "client/core/attach_connection.h"
#include "client/core/control_library.h"
#include "client/pmix/own_daemon.h"
#include "common/status.h"
#include "config/options.h"

namespace ferry::client {

// What ranks must know about a node's daemon.
struct DaemonPlace {
  std::string run_directory;
  std::string control_address;  // host:port for other daemons
};

// Calling thread: one at a time. Calls block until the daemon answers.
class JobStarter {
 public:
  virtual ~JobStarter() = default;
  // Finds the daemon. `alone`: the job has no other node, so a daemon may be started for it.
  virtual StatusOr<DaemonPlace> Find(bool alone) = 0;
  // Creates the job, which lives as long as this object.
  virtual Status CreateJob(const ferry_control_job& job) = 0;
};

// Over the attach socket and the control library.
class NodeDaemon : public JobStarter {
 public:
  explicit NodeDaemon(const config::Options& options) : options_(options) {}

  // Finds the daemon of the run directory; where no option names one, the system's; failing that,
  // starts one of the job's own. kNoDaemon, kPermissionDenied, kTimeout.
  StatusOr<DaemonPlace> Find(bool alone) override;
  Status CreateJob(const ferry_control_job& job) override { return control_->CreateJob(job); }

 private:
  Status Meet(const std::string& run_directory);

  const config::Options options_;
  std::unique_ptr<OwnDaemon> own_;  // destroyed last, when nobody talks to it any more
  std::unique_ptr<AttachConnection> attach_;
  std::unique_ptr<ControlLibrary> control_;
};

}  // namespace ferry::client
