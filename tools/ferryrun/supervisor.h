// Runs the ranks of a job, here and, through their agents, on other hosts: their streams, their
// signals and their ends.
//
// Main thread. One loop of poll over signals and streams; nothing else blocks.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "common/status.h"
#include "tools/ferryrun/agent_protocol.h"
#include "tools/ferryrun/daemons.h"
#include "tools/ferryrun/exchange_hub.h"
#include "tools/ferryrun/foreign_library.h"
#include "tools/ferryrun/output.h"
#include "tools/ferryrun/process.h"
#include "tools/ferryrun/rank_lives.h"
#include "tools/ferryrun/rank_process.h"
#include "tools/ferryrun/remote_host.h"
#include "tools/ferryrun/signals.h"
#include "tools/ferryrun/slots.h"

namespace ferry::tools {

struct SupervisorSettings {
  uint32_t ranks = 1;
  std::string job_id = {};
  std::vector<std::string> programs = {};  // what ranks here run: paths
  bool label = false;                      // "[2] " before each line
  bool keep_going = false;                 // let the other ranks run on when one fails
  uint64_t grace_ms = 5000;                // between asking ranks to end and killing them
  uint64_t timeout_s = 0;                  // after which the job is ended; 0: never
  // Tells the daemon of a rank here how its process has ended. True: the rank never attached.
  std::function<bool(uint32_t rank, const std::string& how)> ask_absent = {};
};

class Supervisor {
 public:
  // `daemons` are watched, not stopped. `slots`: of the ranks here; null if there are none. All
  // pointers given here and below must outlive this object.
  Supervisor(const SupervisorSettings& settings, SignalSource* signals, Slots* slots,
             std::vector<PrivateDaemon>* daemons);
  ~Supervisor();  // kills what still runs

  // Serves ranks that do not use Ferry: `servers` those here, null if there are none. By rank, the
  // number of its machine: 0 here, from 1 on its host, in the order of AddHost.
  void Serve(RankServers* servers, std::vector<uint32_t> machine_of_rank);
  // Adds a host for ranks that are started later.
  void AddHost(RemoteHost* host);
  // Starts the next rank, from 0 on, here or on a host. Rank 0 gets standard input. A rank that a
  // host cannot start fails in Run.
  Status StartHere(RankCommand command);
  Status StartThere(RemoteHost* host, const AgentRank& rank);

  // Runs until all ranks have ended, their output is written, and the hosts have nothing left.
  // Returns the exit code for ferryrun: that with which a rank ended the job (shmem_global_exit;
  // ferry_abort, 1 for 0), unless it did so because another had failed before; else that of the
  // first rank that failed, 1 for one that exited with 0 and had still to call MPI_Finalize, 128 +
  // signal if a signal killed it or ferryrun was asked by one to end the job, 1 if only a daemon or
  // a host failed, 124 after
  // the timeout, 126 or 127 if a host could not start a rank.
  int Run();
  // Returns true if a rank of this machine has said that its daemon has died, or hangs.
  bool has_lost_daemon_here() const { return has_lost_daemon_here_; }

 private:
  struct Stream {
    UniqueFd fd;  // invalid: frames of a host bring it
    LineMixer* lines;
    size_t source;         // of `lines`
    int sifted_rank = -1;  // whose messages SameWords shows once; below 0: all is shown
  };
  struct Rank {
    pid_t pid = -1;              // -1: not known yet
    RemoteHost* host = nullptr;  // null: here
    bool ended = false;
  };
  struct Host {
    RemoteHost* remote;
    Stream errors;      // the launcher's own
    bool over = false;  // it sends nothing any more, and that has been dealt with
  };
  enum class Phase { kRunning, kStopping, kKilled };

  void AddStreams(UniqueFd out, UniqueFd err);
  void Poll();
  void PollHosts(const pollfd* fds);
  void TakeFrames(Host* host);
  int PollTimeoutMs() const;
  void OnSignal(int signal);
  void OnInterrupt();
  void OnChildEnd();
  void OnSlots();
  void OnSlotsLost();
  void EndSlots();
  void NoteEnd(uint32_t rank, const ProcessEnd& end);
  void WeighFailures();
  void OnFrame(RemoteHost* host, const Frame& frame);
  void OnStartFailure(const RemoteHost& host, const Frame& frame);
  void Decide(int exit_code);
  void ReadNotices();
  void OnNotice(const RankNotice& notice);
  void OnAbort(const RankNotice& notice);
  void EndByAbort(const RankNotice& notice);
  void AskAboutSilentRanks();
  void OnAbsent(uint32_t rank);
  bool IsCauseKnown() const;
  void OnServers();
  void OnExchangeFrame(const RemoteHost& host, const Frame& frame);
  void OnExchange(uint32_t machine, const ExchangeMessage& message);
  void OnMet(const ExchangeMessage& message);
  void OnFault(const ExchangeMessage& message);
  std::string WhyWithoutServer(uint32_t rank) const;
  void OnHostEnd(Host* host, const Status& status);
  void SendInput();
  void StopHosts();
  void ReportFailures();
  void OnTimeout();
  void OnDaemonEnd(const std::string& text);
  void ReadStream(Stream* stream);
  void Feed(Stream* stream, std::string_view bytes);
  void TellSameWords(uint64_t now_ns);
  void FlushSinks();
  void DrainStreams();
  void SignalRanks(int signal);
  void Stop(int signal);
  void Kill();
  void SayEnding();
  uint64_t WatchNs() const;
  bool Watches() const;
  void WatchLibraries(uint64_t now_ns);
  void SayForeignLibrary();
  void Say(const std::string& text);
  uint32_t Running() const;
  std::string RunningText() const;

  const SupervisorSettings settings_;
  SignalSource* const signals_;
  Slots* const slots_;
  std::vector<PrivateDaemon>* const daemons_;
  OutputSink out_;
  OutputSink err_;
  LineMixer out_lines_{&out_};
  LineMixer err_lines_{&err_};
  SameWords same_words_;  // of ranks, and of this about them
  StdinForwarder stdin_;
  std::vector<Rank> ranks_;
  std::vector<Stream> streams_;  // two for each rank: standard output and error
  std::vector<Host> hosts_;
  RankLives lives_;
  bool aborted_ = false;
  std::optional<RankNotice> late_abort_;  // of a rank that has heard of an end, which is to come
  bool cause_was_reported_ = false;       // where others go on: nothing is to come
  UniqueFd input_;                        // of rank 0, on its way to a host
  uint32_t input_under_way_ = 0;          // bytes that the host has and the rank has not
  Phase phase_ = Phase::kRunning;
  bool interrupted_ = false;
  bool daemon_failed_ = false;
  bool has_lost_daemon_here_ = false;
  uint64_t timeout_ns_ = 0;       // when the job has run too long; 0 = never
  uint64_t deadline_ns_ = 0;      // when to go one step further in ending the ranks; 0 = never
  std::vector<uint32_t> failed_;  // ranks whose failure is to be reported
  uint64_t report_ns_ = 0;        // when; 0 = none
  LibraryWatch libraries_;
  RankServers* servers_ = nullptr;
  std::optional<ExchangeHub> hub_;
  std::set<uint32_t> shut_;       // ranks without a way to their PMI-1 server
  bool met_ = false;              // ranks that do not use Ferry have met, or are about to
  int ending_signal_ = 0;         // which one asked ferryrun to end; 0: none
  uint32_t asked_ = 0;            // ranks that ran then
  std::optional<int> exit_code_;  // none: nothing has failed so far
};

}  // namespace ferry::tools
