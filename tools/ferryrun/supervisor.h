// Runs the ranks of a job, here and, through their agents, on other hosts: their streams, their
// signals and their ends.
//
// Main thread. One loop of poll over signals and streams; nothing else blocks.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "common/status.h"
#include "proto/control.pb.h"
#include "tools/ferryrun/agent_protocol.h"
#include "tools/ferryrun/daemons.h"
#include "tools/ferryrun/deadlock_watch.h"
#include "tools/ferryrun/exchange_hub.h"
#include "tools/ferryrun/job_hosts.h"
#include "tools/ferryrun/process.h"
#include "tools/ferryrun/process_table.h"
#include "tools/ferryrun/rank_files.h"
#include "tools/ferryrun/rank_lives.h"
#include "tools/ferryrun/rank_output.h"
#include "tools/ferryrun/rank_process.h"
#include "tools/ferryrun/rank_slots.h"
#include "tools/ferryrun/remote_host.h"
#include "tools/ferryrun/remote_input.h"
#include "tools/ferryrun/signals.h"
#include "tools/ferryrun/slots.h"
#include "tools/ferryrun/why_question.h"

namespace ferry::tools {

struct SupervisorSettings {
  uint32_t ranks = 1;
  std::string job_id = {};
  std::vector<std::string> run_directories = {};  // of the job's daemons here
  std::vector<std::string> programs = {};         // what ranks here run: paths
  std::vector<std::string> unserved = {};         // of these, those that may run without Ferry
  bool label = false;                             // "[2] " before each line
  RankFiles* files = nullptr;                     // for the ranks' output; null: it comes here
  bool keep_going = false;                        // let the other ranks run on when one fails
  uint64_t grace_ms = 5000;                       // between asking ranks to end and killing them
  uint64_t timeout_s = 0;                         // after which the job is ended; 0: never
  // Tells the daemon of a rank here how its process has ended. True: the rank never attached to
  // `program`, of those that follow each other.
  std::function<bool(uint32_t rank, const std::string& how, uint32_t program)> ask_absent = {};
  // Called in Run once all ranks have ended, while daemons and agents still answer.
  std::function<void()> on_ranks_ended = {};
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
  // Tells the user what it finds; null: there is no watch.
  void Tell(DeadlockWatch* deadlocks) { deadlocks_ = deadlocks; }
  // Adds a host for ranks that are started later.
  void AddHost(RemoteHost* host);
  // Asks the daemon of a host, by its agent, what its measured ranks have written (JobProfile):
  // take(part) for each part, until it returns false. Before Run, or in on_ranks_ended; meanwhile
  // all goes on as in Run. Errors of the call; kTimeout: nothing came for a minute; kCancelled: a
  // signal asks ferryrun to end; kNodeUnreachable: the host is lost.
  using TakeProfilePart = std::function<bool(const control::JobProfilePart&)>;
  Status AskProfile(RemoteHost* host, const control::JobProfileRequest& request,
                    const TakeProfilePart& take);
  // The last signal that has asked ferryrun to end; 0: none has.
  int last_ending_signal() const { return last_ending_signal_; }
  // Starts the next rank, from 0 on, here or on a host. Rank 0 gets standard input. A rank that a
  // host cannot start fails in Run.
  Status StartHere(RankCommand command);
  Status StartThere(RemoteHost* host, AgentRank rank);

  // Runs until all ranks have ended, their output is written, and the hosts have nothing left.
  // Returns the exit code for ferryrun: that with which a rank ended the job (shmem_global_exit;
  // ferry_abort, 1 for 0), unless it did so because another had failed before; else that of the
  // first rank that failed, 1 for one that exited with 0 and had still to call MPI_Finalize, 128 +
  // signal if a signal killed it or ferryrun was asked by one to end the job, 1 if only a daemon or
  // a host failed, 124 after
  // the timeout, 126 or 127 if a host could not start a rank.
  int Run();
  // How the ranks live, and have ended.
  const RankLives& lives() const { return lives_; }
  // Returns true if a rank of this machine has said that its daemon has died, or hangs.
  bool has_lost_daemon_here() const { return has_lost_daemon_here_; }

 private:
  enum class Phase { kRunning, kStopping, kKilled };
  struct ProfileQuestion;
  // For a host's daemon to end, beside the grace: one that hangs.
  static constexpr uint64_t kHostMarginMs = 10'000;

  bool IsToHold();
  void LetGo();
  void Poll();
  void TakeFrames();
  int PollTimeoutMs() const;
  void OnSignal(int signal);
  void OnInterrupt();
  void OnChildEnd();
  void OnEnds();
  void OnGuardLost();
  void EndSlots();
  void NoteEnd(uint32_t rank, const ProcessEnd& end);
  void WeighFailures();
  void OnFrame(RemoteHost* host, const Frame& frame);
  void OnStartFailure(const RemoteHost& host, const Frame& frame);
  void Decide(int exit_code);
  int ExitCode() const { return exit_code_.value_or(daemon_failed_ ? 1 : 0); }
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
  void OnLostHosts(const JobHosts::Lost& lost);
  void OnProfile(const RemoteHost& host, const Frame& frame);
  uint64_t QuestionEndNs() const;  // 0: none is asked
  void StopHosts();
  void ReportFailures();
  void OnTimeout();
  void OnDaemonEnd(const std::string& text);
  void FlushOutput();
  void ResizeTerminals();
  void AskWhy(int then);
  void OnWhy(const std::string& host, const std::string& text);
  void LookAtWhy();
  void SayWhy();
  void SignalRanks(int signal);
  void Stop(int signal);
  void Kill();
  void GiveUpHosts();
  void SayEnding();
  void SayForeignLibrary();
  void TellDeadlocks();
  void Say(const std::string& text) { output_.Say(text); }

  const SupervisorSettings settings_;
  SignalSource* const signals_;
  Slots* const slots_;
  std::vector<PrivateDaemon>* const daemons_;
  RankOutput output_;
  StdinForwarder stdin_;
  RankSlots ranks_;
  ProcessTable table_;
  bool are_held_ = false;  // ranks, for a debugger
  JobHosts hosts_;
  RankLives lives_;
  bool aborted_ = false;
  std::optional<RankNotice> late_abort_;  // of a rank that has heard of an end, which is to come
  bool cause_was_reported_ = false;       // where others go on: nothing is to come
  RemoteInput input_;                     // of rank 0, if that is on a host
  Phase phase_ = Phase::kRunning;
  bool interrupted_ = false;
  int last_ending_signal_ = 0;
  uint32_t ending_signals_ = 0;              // how many have come
  ProfileQuestion* question_ = nullptr;      // that waits for its answer
  uint32_t questions_ = 0;                   // that were asked so far
  bool uses_ferry_ = false;                  // a rank has begun to join
  WhyQuestion why_;                          // before the job is ended
  std::map<std::string, std::string> whys_;  // of other hosts, by title; the answers
  int after_why_ = 0;                        // the signal that the ranks get then
  size_t hosts_that_answer_ = 0;             // are still to
  uint64_t why_deadline_ns_ = 0;             // when to go on without an answer; 0: never
  bool daemon_failed_ = false;
  bool has_lost_daemon_here_ = false;
  uint64_t timeout_ns_ = 0;       // when the job has run too long; 0 = never
  uint64_t deadline_ns_ = 0;      // when to go one step further in ending the ranks; 0 = never
  std::vector<uint32_t> failed_;  // ranks whose failure is to be reported
  uint64_t report_ns_ = 0;        // when; 0 = none
  RankServers* servers_ = nullptr;
  DeadlockWatch* deadlocks_ = nullptr;
  std::optional<ExchangeHub> hub_;
  std::set<uint32_t> shut_;       // ranks without a way to their PMI-1 server
  int ending_signal_ = 0;         // which one asked ferryrun to end; 0: none
  uint32_t asked_ = 0;            // ranks that ran then
  std::optional<int> exit_code_;  // none: nothing has failed so far
};

}  // namespace ferry::tools
