// The daemons of this machine that serve a job: one that is already running, or private ones.
//
// Main thread. Calls block for at most the times that they are given, and for a daemon's answer.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/status.h"
#include "config/options.h"
#include "tools/admin/certificate_maker.h"
#include "tools/admin/launcher_client.h"
#include "tools/admin/private_directory.h"
#include "tools/ferryrun/private_daemon.h"
#include "tools/ferryrun/signals.h"

namespace ferry::tools {

// A daemon that takes part in the job.
struct ServingDaemon {
  LauncherClient client;
  std::string run_directory;
  std::string control_address;
};

// The daemon that serves the run directory, or else, unless the user named that, the node's.
// Nothing if there is none for this user; the error of one that is there but cannot be used, and
// kNoDaemon if the user named a run directory that none serves.
StatusOr<std::optional<ServingDaemon>> FindRunningDaemon(const config::Options& options,
                                                         bool names_run_directory);

// Which private daemons to start.
struct PrivatePlan {
  std::string program;  // empty: found beside ferryrun
  uint32_t first_node = 0;
  uint32_t count = 1;
  std::string address = {};  // at which other hosts reach them; empty: none does
  // Vouches for them to daemons of other hosts; without it, the options decide.
  std::optional<CertificateAndKey> authority = {};
};

class PrivateDaemons {
 public:
  // Starts them, and waits until they serve. If one cannot be started, the others stay until Stop.
  Status Start(const PrivatePlan& plan, const config::Options& options, SignalSource* signals);

  std::vector<PrivateDaemon>& processes() { return processes_; }
  // Connects to them. This comes late because gRPC starts threads, and it is best to fork processes
  // without threads.
  StatusOr<std::vector<ServingDaemon>> Connect() const;
  // Stops them; a sentence for each that did not end as it should.
  std::vector<std::string> Stop(uint64_t grace_ms);

 private:
  Status UseCertificate(const PrivatePlan& plan, uint32_t node, config::Options* options);

  std::optional<PrivateDirectory> directory_;
  std::vector<PrivateDaemon> processes_;
};

}  // namespace ferry::tools
