// Runs the ranks of a job: their streams, their signals and their ends.
//
// Main thread. One loop of poll over signals and streams; nothing else blocks.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/status.h"
#include "tools/ferryrun/output.h"
#include "tools/ferryrun/private_daemon.h"
#include "tools/ferryrun/process.h"
#include "tools/ferryrun/signals.h"
#include "tools/ferryrun/stdin_forwarder.h"

namespace ferry::tools {

struct SupervisorSettings {
  uint32_t ranks = 1;
  bool label = true;         // "[2] " before each line
  bool keep_going = false;   // let the other ranks run on when one fails
  uint64_t grace_ms = 5000;  // between asking ranks to end and killing them
};

class Supervisor {
 public:
  // `daemons` are watched, not stopped. Both pointers must outlive this.
  Supervisor(const SupervisorSettings& settings, SignalSource* signals,
             std::vector<PrivateDaemon>* daemons);
  ~Supervisor();  // kills what still runs

  // Starts rank number 0, 1, 2, ... Rank 0 gets standard input.
  Status StartRank(const std::string& path, const std::vector<std::string>& arguments,
                   std::vector<std::string> environment);

  // Until all ranks have ended and their output is written. Returns the exit code for ferryrun:
  // that of the first rank that failed, 128 + signal if a signal killed it, 1 if only a daemon
  // failed.
  int Run();

 private:
  struct Stream {
    UniqueFd fd;
    LineSplitter lines;
    OutputSink* sink;
  };
  struct Rank {
    pid_t pid;
    bool ended = false;
    ProcessEnd end;
  };
  enum class Phase { kRunning, kStopping, kKilled };

  void Poll();
  int PollTimeoutMs() const;
  void OnSignal(int signal);
  void OnChildEnd();
  void ReportFailures();
  void OnTimeout();
  void OnDaemonEnd(PrivateDaemon* daemon, const ProcessEnd& end);
  void ReadStream(Stream* stream);
  void FlushSinks();
  void DrainStreams();
  void SignalRanks(int signal);
  void Stop(int signal);
  void Kill();
  void Say(const std::string& text);
  uint32_t Running() const;

  const SupervisorSettings settings_;
  SignalSource* const signals_;
  std::vector<PrivateDaemon>* const daemons_;
  OutputSink out_;
  OutputSink err_;
  StdinForwarder stdin_;
  std::vector<Rank> ranks_;
  std::vector<Stream> streams_;
  Phase phase_ = Phase::kRunning;
  bool interrupted_ = false;
  uint64_t deadline_ns_ = 0;      // when to go one step further in ending the ranks; 0 = never
  std::vector<uint32_t> failed_;  // ranks whose failure is to be reported
  uint64_t report_ns_ = 0;        // when; 0 = none
  int exit_code_ = 0;
};

}  // namespace ferry::tools
