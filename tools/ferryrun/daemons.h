// The daemons of this machine that serve a job: one that is already running, or private ones.
//
// Main thread. Calls block for at most the times that they are given, and for a daemon's answer.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/status.h"
#include "common/unique_fd.h"
#include "config/options.h"
#include "tools/admin/certificate_maker.h"
#include "tools/admin/daemon_client.h"
#include "tools/admin/private_directory.h"
#include "tools/ferryrun/process.h"
#include "tools/ferryrun/signals.h"

namespace ferry::tools {

// A ferryd that belongs to one ferryrun and ends with it. Start returns at once.
class PrivateDaemon {
 public:
  // Starts `program` for node `node` in FOLDER/NODE, and makes that directory. Replaces the place,
  // the ports and the job in `options`.
  static StatusOr<PrivateDaemon> Start(const std::string& program, uint32_t node,
                                       const std::string& folder, config::Options options);
  PrivateDaemon(PrivateDaemon&& other) noexcept;
  PrivateDaemon& operator=(PrivateDaemon&&) = delete;
  ~PrivateDaemon();  // kills it if it still runs

  // Waits until the daemon serves, however long a loaded machine takes; tells the user after
  // `patience_ms`. kDaemonDied with its last words when it ends instead, and kCancelled when a
  // signal asks ferryrun to end, or the other end of `life_fd` is closed (-1: there is none).
  Status WaitUntilReady(uint64_t patience_ms, SignalSource* signals, int life_fd);

  uint32_t node() const { return node_; }
  pid_t pid() const { return pid_; }
  const std::string& run_directory() const { return run_directory_; }
  // host:port for other daemons; known once it is ready.
  const std::string& control_address() const { return control_address_; }
  // "ferryd of node 0 (pid 12)".
  std::string Name() const;
  // Returns the last lines that the daemon wrote, each indented, with a line end before each.
  std::string LastWords() const;

  // True once the user has been told that the daemon ended by itself.
  bool end_was_reported() const { return end_was_reported_; }
  void MarkEndReported() { end_was_reported_ = true; }

  // Asks it to stop (SIGTERM); WaitUntilStopped kills it once it is `kill_ns` (MonotonicNs).
  void AskToStop();
  ProcessEnd WaitUntilStopped(uint64_t kill_ns);
  // True if WaitUntilStopped had to kill the daemon, because it hung.
  bool was_killed() const { return was_killed_; }

 private:
  PrivateDaemon() = default;
  Status ReadAddress();

  uint32_t node_ = 0;
  pid_t pid_ = -1;
  bool end_was_reported_ = false;
  bool was_killed_ = false;
  std::string run_directory_;
  std::string control_address_;
  UniqueFd ready_;  // read end: a line once it serves
  UniqueFd log_;    // a file without a name: its standard error
};

// A daemon that takes part in the job.
struct ServingDaemon {
  LauncherClient client;
  std::string run_directory;
  std::string control_address;
};

// Connects to the daemon that serves the run directory, or else, unless the user named that, to the
// node's. Returns nothing if there is none for this user. Errors: why a daemon that is there cannot
// be used; kNoDaemon: none serves the run directory that the user named.
StatusOr<std::optional<ServingDaemon>> FindRunningDaemon(const config::Options& options,
                                                         bool names_run_directory);

// The private daemons to start.
struct PrivatePlan {
  std::string program;  // empty: found beside ferryrun
  uint32_t first_node = 0;
  uint32_t count = 1;
  std::string address = {};  // at which other hosts reach them; empty: none does
  // Vouches for them to daemons of other hosts; without it, the options decide.
  std::optional<CertificateAndKey> authority = {};
  int life_fd = -1;  // the process that wants them has the other end; -1: this process does
};

class PrivateDaemons {
 public:
  // Starts them, and waits until they serve. If one cannot be started, the others stay until Stop.
  Status Start(const PrivatePlan& plan, const config::Options& options, SignalSource* signals);

  std::vector<PrivateDaemon>& processes() { return processes_; }
  // Connects to them. This comes late because gRPC starts threads, and it is best to fork processes
  // without threads.
  StatusOr<std::vector<ServingDaemon>> Connect() const;
  // Stops the daemons, all at the same time. Those that still run after `grace_ms` are killed.
  // Returns a sentence for each that did not end as it should.
  std::vector<std::string> Stop(uint64_t grace_ms);

 private:
  Status UseCertificate(const PrivatePlan& plan, uint32_t node, config::Options* options);

  std::optional<PrivateDirectory> directory_;
  std::vector<PrivateDaemon> processes_;
  uint64_t attach_timeout_ms_ = 0;
};

// The flag that makes a ferryrun the helper of a job that no ferryrun started: its ranks were
// started under PMIx, and libferry calls ferryrun for a private daemon
// (client/bootstrap/own_daemon.h).
inline constexpr char kHelperFlag[] = "--daemon";

// Starts a daemon with the options of the environment and writes "serves RUN_DIRECTORY", or why
// there is none, to standard output. Stops it when standard input ends, or on a signal. Returns the
// exit code. Main thread.
int RunDaemonHelper();

}  // namespace ferry::tools
