#include "tools/ferryrun/supervisor.h"

#include <poll.h>
#include <signal.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "common/clock.h"
#include "common/counted.h"
#include "tools/ferryrun/rank_servers.h"

namespace ferry::tools {
namespace {

constexpr uint64_t kNsPerMs = 1'000'000;
constexpr uint64_t kCauseWaitMs = 100;
constexpr uint64_t kPatientCauseWaitMs = 2000;  // where nothing is ended for it
constexpr uint64_t kConsequenceWaitMs = 5000;   // after the end of one that has heard of another's
constexpr int kTimedOut = 124;                  // as timeout(1) says it

}  // namespace

Supervisor::Supervisor(const SupervisorSettings& settings, SignalSource* signals, Slots* slots,
                       std::vector<PrivateDaemon>* daemons)
    : settings_(settings),
      signals_(signals),
      slots_(slots),
      daemons_(daemons),
      output_(settings.ranks, settings.label, settings.files),
      ranks_(settings.unserved, slots),
      table_(settings.ranks) {}

Supervisor::~Supervisor() {
  Kill();
  EndSlots();
}

void Supervisor::AddHost(RemoteHost* host) {
  output_.AddLauncher(host->name(), host->TakeErrors());
  hosts_.Add(host);
}

// Returns true if the next rank is to be held for a debugger. Ranks that were started before one
// said that it is there are not.
bool Supervisor::IsToHold() {
  are_held_ = are_held_ || table_.IsDebugged();
  return are_held_;
}

// The debugger has seen all ranks.
void Supervisor::LetGo() {
  if (std::exchange(are_held_, false)) {
    SignalRanks(SIGCONT);
  }
}

Status Supervisor::StartHere(RankCommand command) {
  command.is_held = IsToHold();
  StatusOr<RankProcess> process = StartRank(command, slots_, servers_);
  FERRY_RETURN_IF_ERROR(process.status());
  output_.AddRank(std::move(process->out), std::move(process->err));
  if (ranks_.size() == 0) {
    stdin_.Start(std::move(process->in));  // the others' input ends at once
  }
  ranks_.AddHere(process->pid);
  lives_.Add();
  if (table_.Add("", command.program.empty() ? "" : command.program.front(), process->pid)) {
    LetGo();
  }
  return {};
}

Status Supervisor::StartThere(RemoteHost* host, AgentRank rank) {
  rank.is_held = IsToHold();
  if (ranks_.size() == 0) {
    StatusOr<UniqueFd> input = input_.Start(host);
    FERRY_RETURN_IF_ERROR(input.status());
    stdin_.Start(std::move(*input));
  }
  host->Send(FrameKind::kStartRank, ranks_.size(), ToText(rank));
  output_.AddRank(UniqueFd(), UniqueFd());
  ranks_.AddThere(host);
  (void)table_.Add(host->name(),
                   rank.part < settings_.programs.size() ? settings_.programs[rank.part] : "", -1);
  lives_.Add();
  return {};
}

int Supervisor::Run() {
  if (settings_.timeout_s > 0) {
    timeout_ns_ = MonotonicNs() + settings_.timeout_s * 1000 * kNsPerMs;
  }
  OnEnds();  // for what ended before this began to listen
  OnChildEnd();
  TakeFrames();  // which came beside an answer that was waited for
  while (ranks_.Running() > 0) {
    Poll();
  }
  timeout_ns_ = 0;
  why_deadline_ns_ = 0;
  SayEnding();
  SayForeignLibrary();
  EndSlots();  // and what ranks left in their session, so that their streams end
  if (settings_.on_ranks_ended != nullptr) {
    settings_.on_ranks_ended();
  }
  StopHosts();
  ranks_.Clear();
  output_.Drain();
  hosts_.Clear();
  stdin_ = StdinForwarder();
  input_.Reset();
  phase_ = Phase::kRunning;
  deadline_ns_ = 0;
  interrupted_ = true;
  // The reader of the output may be slow; one more signal ends the waiting.
  while (phase_ == Phase::kRunning && !output_.empty()) {
    Poll();
  }
  return ExitCode();
}

void Supervisor::Poll() {
  std::vector<pollfd> fds = {{signals_->fd(), POLLIN, 0},
                             stdin_.Interest(),
                             {servers_ != nullptr ? servers_->fd() : -1, POLLIN, 0},
                             {deadlocks_ != nullptr ? deadlocks_->fd() : -1, POLLIN, 0}};
  const size_t first_stream = fds.size();
  output_.AppendInterests(&fds);
  fds.push_back({ranks_.notice_fd(), POLLIN, 0});
  fds.push_back({ranks_.guard_fd(), POLLIN, 0});
  const size_t first_host = fds.size();
  const bool full = output_.IsFull();
  fds.push_back(input_.Interest());
  hosts_.AppendInterests(/*reads=*/!full, &fds);
  const size_t first_answer = fds.size();
  why_.AppendInterests(&fds);
  const int ready = poll(fds.data(), fds.size(), PollTimeoutMs());
  why_.OnReady(fds.data() + first_answer);  // before anything asks again
  OnTimeout();
  LookAtWhy();
  if (ready <= 0) {
    return;
  }
  ReadNotices();  // before the ends that follow from them
  if (fds[2].revents != 0) {
    OnServers();
  }
  if (fds[3].revents != 0) {
    TellDeadlocks();
  }
  output_.OnReady(&fds[first_stream]);
  if (fds[first_host - 1].revents != 0) {
    OnEnds();
  }
  if (fds[first_host].revents != 0) {
    input_.Advance();
  }
  hosts_.OnReady(&fds[first_host + 1]);
  TakeFrames();
  if (fds[1].revents != 0) {
    stdin_.Advance();
  }
  if (fds[0].revents != 0) {
    while (const std::optional<int> signal = signals_->Next()) {
      OnSignal(*signal);
    }
  }
  FlushOutput();
}

void Supervisor::TakeFrames() {
  hosts_.TakeFrames([this](RemoteHost* host, const Frame& frame) { OnFrame(host, frame); });
  while (const std::optional<JobHosts::Lost> lost = hosts_.NextLost()) {
    OnLostHosts(*lost);
  }
}

int Supervisor::PollTimeoutMs() const {
  uint64_t next_ns = output_.deadline_ns();
  for (const uint64_t time_ns : {deadline_ns_, report_ns_, timeout_ns_, why_deadline_ns_,
                                 QuestionEndNs(), ranks_.WatchNs()}) {
    next_ns = time_ns == 0 ? next_ns : std::min(next_ns, time_ns);
  }
  const uint64_t now_ns = MonotonicNs();
  if (next_ns == UINT64_MAX) {
    return -1;
  }
  return now_ns >= next_ns ? 0 : static_cast<int>((next_ns - now_ns) / kNsPerMs + 1);
}

void Supervisor::OnTimeout() {
  const uint64_t now_ns = MonotonicNs();
  output_.OnTime(now_ns);
  ranks_.Watch(now_ns);
  if (report_ns_ != 0 && now_ns >= report_ns_) {
    ReportFailures();
  }
  if (timeout_ns_ != 0 && now_ns >= timeout_ns_) {
    timeout_ns_ = 0;
    Decide(kTimedOut);
    Say("the job did not end within " + std::to_string(settings_.timeout_s) +
        " s (--timeout); ending its " + Counted(ranks_.Running(), "rank"));
    AskWhy(SIGTERM);
  }
  if (deadline_ns_ != 0 && now_ns >= deadline_ns_) {
    switch (phase_) {
      case Phase::kRunning:
        return Stop(SIGTERM);
      case Phase::kStopping:
        return Kill();
      case Phase::kKilled:
        return GiveUpHosts();
    }
  }
}

void Supervisor::OnSignal(int signal) {
  if (IsEnding(signal)) {
    last_ending_signal_ = signal;
    ++ending_signals_;
  }
  switch (signal) {
    case SIGCHLD:
      OnChildEnd();
      return;
    case SIGINT:
      OnInterrupt();
      return;
    case SIGTERM:
    case SIGHUP:
    case SIGQUIT:
      Decide(128 + signal);
      if (ending_signal_ == 0) {
        ending_signal_ = signal;
        asked_ = ranks_.Running();
      }
      if (phase_ == Phase::kRunning) {
        Say(std::string("told to end by SIG") + sigabbrev_np(signal) + "; passing it on to " +
            ranks_.RunningText() + ", and killing what is left after " +
            std::to_string(settings_.grace_ms) + " ms");
        Stop(signal);
      } else {
        Kill();
      }
      return;
    case SIGTSTP:
      SignalRanks(SIGTSTP);
      raise(SIGSTOP);
      return;
    case SIGWINCH:
      ResizeTerminals();
      SignalRanks(SIGWINCH);
      return;
    default:
      SignalRanks(signal);
  }
}

void Supervisor::OnChildEnd() {
  for (PrivateDaemon& daemon : *daemons_) {
    ProcessEnd end;
    if (!daemon.end_was_reported() && HasEnded(daemon.pid(), &end)) {
      daemon.MarkEndReported();
      OnDaemonEnd(daemon.Name() + " " + Describe(end) + " while the job ran" + daemon.LastWords());
    }
  }
}

void Supervisor::OnEnds() {
  const std::vector<RankSlots::Ended> ends = ranks_.TakeEnds();
  ReadNotices();  // their own have come before their ends
  for (const auto& [rank, end] : ends) {
    NoteEnd(rank, end);
  }
  if (ranks_.has_lost_guard()) {
    OnGuardLost();
  }
  WeighFailures();
}

// The guard was killed: the kernel kills its ranks, and this function the processes that they had
// started.
void Supervisor::OnGuardLost() {
  const uint32_t lost = ranks_.Lose(nullptr);
  if (lost == 0) {
    return;
  }
  Decide(1);
  Say("its process that starts ranks (ferry-guard) was killed; " + Counted(lost, "rank") +
      " of this host ended with it");
  EndSlots();
  if (phase_ == Phase::kRunning) {
    Stop(SIGTERM);
  }
}

void Supervisor::EndSlots() {
  std::vector<pid_t> spared;
  for (const PrivateDaemon& daemon : *daemons_) {
    spared.push_back(daemon.pid());
  }
  const std::vector<pid_t> launchers = hosts_.pids();
  spared.insert(spared.end(), launchers.begin(), launchers.end());
  ranks_.End(spared);
}

void Supervisor::NoteEnd(uint32_t rank, const ProcessEnd& end) {
  ranks_.MarkEnded(rank);
  lives_.OnEnd(rank, end);
  if (lives_.HasFailed(rank)) {
    failed_.push_back(rank);
  }
  AskAboutSilentRanks();
}

// A rank that exited by itself waits for one that was killed, which then is the cause; one that has
// heard of an end waits longer, for that end.
void Supervisor::WeighFailures() {
  std::stable_sort(failed_.begin(), failed_.end(), [this](uint32_t one, uint32_t other) {
    return lives_.WeightOf(one) < lives_.WeightOf(other);
  });
  if (failed_.empty() && !late_abort_.has_value()) {
    return;
  }
  const bool killed =
      !failed_.empty() && lives_.WeightOf(failed_.front()) == RankLives::Weight::kKilled;
  if (killed || ranks_.Running() == 0) {
    return ReportFailures();
  }
  const bool is_known = IsCauseKnown() || daemon_failed_ || lives_.has_lost_daemon();
  const uint64_t wait_ms = !is_known              ? kConsequenceWaitMs
                           : settings_.keep_going ? kPatientCauseWaitMs
                                                  : kCauseWaitMs;
  const uint64_t due_ns = MonotonicNs() + wait_ms * kNsPerMs;
  report_ns_ = report_ns_ == 0 ? due_ns : std::min(report_ns_, due_ns);
}

// Returns true if a failure that is to be reported, or was, is not the consequence of another one.
bool Supervisor::IsCauseKnown() const {
  return cause_was_reported_ ||
         (!failed_.empty() && lives_.WeightOf(failed_.front()) != RankLives::Weight::kConsequence);
}

// Others may wait in MPI_Init for a rank that has ended.
void Supervisor::AskAboutSilentRanks() {
  for (const uint32_t rank : lives_.TakeSilent()) {
    const std::string how = lives_.DescribeAbsent(rank);
    if (RemoteHost* const host = ranks_.HostOf(rank); host != nullptr) {
      host->Send(FrameKind::kAskAbsent, rank,
                 NumberPayload(static_cast<int32_t>(lives_.program())) + how);
    } else if (settings_.ask_absent != nullptr &&
               settings_.ask_absent(rank, how, lives_.program())) {
      OnAbsent(rank);
    }
  }
}

void Supervisor::OnAbsent(uint32_t rank) {
  if (!lives_.HasFailed(rank)) {
    failed_.push_back(rank);
  }
  lives_.MarkAbsent(rank);
}

void Supervisor::OnFrame(RemoteHost* host, const Frame& frame) {
  const bool of_rank = ranks_.IsOn(host, frame.rank);
  switch (frame.kind) {
    case FrameKind::kStarted:
      if (of_rank) {
        ranks_.SetPid(frame.rank, ReadNumber(frame));
        if (table_.SetPid(frame.rank, ReadNumber(frame))) {
          LetGo();
        }
      }
      return;
    case FrameKind::kOutput:
      if (of_rank && frame.payload.size() > 1) {
        output_.FeedRank(frame.rank, /*is_error=*/frame.payload[0] != 1,
                         std::string_view(frame.payload).substr(1));
      }
      return;
    case FrameKind::kEnded:
      if (of_rank && !ranks_.HasEnded(frame.rank)) {
        NoteEnd(frame.rank, ReadEnd(frame));
        WeighFailures();
      }
      return;
    case FrameKind::kTaken:
      input_.OnTaken(static_cast<uint32_t>(ReadNumber(frame)));
      return;
    case FrameKind::kFailed:
      OnStartFailure(*host, frame);
      return;
    case FrameKind::kNotice:
      if (const std::optional<RankNotice> notice = ReadNotice(frame); of_rank && notice) {
        OnNotice(*notice);
      }
      return;
    case FrameKind::kExchange:
      OnExchangeFrame(*host, frame);
      return;
    case FrameKind::kAbsent:
      if (of_rank) {
        OnAbsent(frame.rank);
        WeighFailures();
      }
      return;
    case FrameKind::kDaemonEnded:
      OnDaemonEnd(host->Title() + ": " + frame.payload);
      return;
    case FrameKind::kWhy:
      OnWhy(host->Title(), frame.payload);
      return;
    case FrameKind::kProfile:
    case FrameKind::kProfileEnd:
      OnProfile(*host, frame);
      return;
    case FrameKind::kDeadlock:
      Say(host->Title() + ": " + frame.payload);
      return;
    case FrameKind::kStopped:
      if (!frame.payload.empty()) {
        Say(host->Title() + ": " + frame.payload);
      }
      return;
    default:
      return;  // an answer to a question that was given up
  }
}

// The first cause counts.
void Supervisor::Decide(int exit_code) {
  if (!exit_code_.has_value()) {
    exit_code_ = exit_code;
  }
}

void Supervisor::ReadNotices() {
  while (const std::optional<RankNotice> notice = ranks_.NextNotice()) {
    OnNotice(*notice);
  }
}

void Supervisor::OnNotice(const RankNotice& notice) {
  if (notice.rank >= ranks_.size()) {
    return;
  }
  if (notice.kind == RankNotice::Kind::kAborts || notice.kind == RankNotice::Kind::kExits) {
    return OnAbort(notice);
  }
  lives_.OnNotice(notice);
  has_lost_daemon_here_ |= ranks_.HostOf(notice.rank) == nullptr && IsOfLostDaemon(notice);
  if (notice.kind == RankNotice::Kind::kEnters || notice.kind == RankNotice::Kind::kMeets) {
    uses_ferry_ = true;
    AskAboutSilentRanks();
    WeighFailures();
  }
}

// It is the cause of whatever happens to the ranks from now on; unless the rank has heard of an
// end, which ferryrun hears of a moment later.
void Supervisor::OnAbort(const RankNotice& notice) {
  if (std::exchange(aborted_, true)) {
    return;
  }
  if (lives_.HasHeardOfEnd(notice.rank) && !cause_was_reported_) {
    late_abort_ = notice;
    WeighFailures();
  } else {
    EndByAbort(notice);
  }
}

void Supervisor::EndByAbort(const RankNotice& notice) {
  const bool is_exit = notice.kind == RankNotice::Kind::kExits;
  const int code = notice.exit_code & 0xff;
  const bool hides_abort = code == 0 && !is_exit;
  Say("rank " + std::to_string(notice.rank) + (is_exit ? " ended" : " aborted") +
      " the job with exit code " + std::to_string(notice.exit_code) +
      (hides_abort ? "; ferryrun exits with 1, since an aborted job has not ended well" : ""));
  if (!is_exit) {
    table_.SayAborted("rank " + std::to_string(notice.rank) + " aborted with exit code " +
                      std::to_string(notice.exit_code));
  }
  Decide(hides_abort ? 1 : code);
  if (phase_ == Phase::kRunning) {
    Stop(SIGTERM);
  }
}

// Reports the first failure and ends the other ranks; all failures, if they are to go on.
void Supervisor::ReportFailures() {
  report_ns_ = 0;
  const std::optional<RankNotice> late_abort = std::exchange(late_abort_, std::nullopt);
  if (late_abort.has_value() && !IsCauseKnown()) {
    EndByAbort(*late_abort);
  }
  cause_was_reported_ = IsCauseKnown();
  for (const uint32_t rank : std::exchange(failed_, {})) {
    if (exit_code_.has_value() && !settings_.keep_going) {
      return;
    }
    const std::string what = lives_.Describe(rank) + WhyWithoutServer(rank);
    Decide(lives_.ExitCode(rank));
    std::string text =
        "rank " + std::to_string(rank) + " (pid " + ranks_.PidText(rank) + ") " + what;
    if (!settings_.keep_going && phase_ == Phase::kRunning) {
      if (const uint32_t others = ranks_.Running(); others > 0) {
        text += "; ending the other " + (others > 1 ? std::to_string(others) + " ranks" : "rank");
      }
      Stop(SIGTERM);
    }
    const bool is_known = interrupted_ && lives_.End(rank).signal == SIGINT;  // to the user
    if (!is_known && output_.IsNew(rank, what)) {
      Say(text);
    }
  }
  if (late_abort.has_value() && phase_ == Phase::kRunning) {
    Stop(SIGTERM);  // it has ended the job, whatever the cause
  }
}

void Supervisor::OnDaemonEnd(const std::string& text) {
  daemon_failed_ = true;
  Say(text);
  // Its ranks learn it from libferry and end by themselves; those that do not are ended.
  if (phase_ == Phase::kRunning && deadline_ns_ == 0) {
    deadline_ns_ = MonotonicNs() + settings_.grace_ms * kNsPerMs;
  }
}

void Supervisor::FlushOutput() {
  if (const Status written = output_.Flush(); !written.ok() && phase_ == Phase::kRunning) {
    Say(written.message());
    Decide(1);
    Stop(SIGTERM);
  }
}

void Supervisor::SignalRanks(int signal) {
  ranks_.Signal(signal);
  hosts_.SendToAll(FrameKind::kSignal, 0, NumberPayload(signal));
}

void Supervisor::Stop(int signal) {
  phase_ = Phase::kStopping;
  deadline_ns_ = MonotonicNs() + settings_.grace_ms * kNsPerMs;
  SignalRanks(signal);
  SignalRanks(SIGCONT);  // a stopped rank could not see the signal
}

void Supervisor::Kill() {
  phase_ = Phase::kKilled;
  deadline_ns_ = MonotonicNs() + kHostMarginMs * kNsPerMs;
  SignalRanks(SIGKILL);
}

}  // namespace ferry::tools
