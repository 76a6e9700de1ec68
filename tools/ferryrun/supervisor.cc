#include "tools/ferryrun/supervisor.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "common/clock.h"

namespace ferry::tools {
namespace {

constexpr uint64_t kNsPerMs = 1'000'000;
constexpr uint64_t kCauseWaitMs = 100;
constexpr uint64_t kPatientCauseWaitMs = 2000;  // where nothing is ended for it
constexpr size_t kBlockBytes = 1 << 14;
constexpr int kDrainBlocks = 64;  // more than a pipe holds

std::string Label(uint32_t rank, const SupervisorSettings& settings) {
  if (!settings.label) {
    return "";
  }
  const std::string number = std::to_string(rank);
  const size_t width = std::to_string(settings.ranks - 1).size();
  return "[" + std::string(width - number.size(), ' ') + number + "] ";
}

}  // namespace

Supervisor::Supervisor(const SupervisorSettings& settings, SignalSource* signals,
                       std::vector<PrivateDaemon>* daemons)
    : settings_(settings),
      signals_(signals),
      daemons_(daemons),
      out_(STDOUT_FILENO),
      err_(STDERR_FILENO) {}

Supervisor::~Supervisor() {
  Kill();
  for (const Rank& rank : ranks_) {
    Reap(rank.pid);
  }
}

Status Supervisor::StartRank(const std::string& path, const std::vector<std::string>& arguments,
                             std::vector<std::string> environment) {
  const auto rank = static_cast<uint32_t>(ranks_.size());
  StatusOr<Pipe> in = MakePipe();
  FERRY_RETURN_IF_ERROR(in.status());
  StatusOr<Pipe> out = MakePipe();
  FERRY_RETURN_IF_ERROR(out.status());
  StatusOr<Pipe> err = MakePipe();
  FERRY_RETURN_IF_ERROR(err.status());
  const StatusOr<pid_t> pid = Spawn({.path = path,
                                     .arguments = arguments,
                                     .environment = std::move(environment),
                                     .stdin_fd = in->read.get(),
                                     .stdout_fd = out->write.get(),
                                     .stderr_fd = err->write.get(),
                                     .parent_death_signal = SIGKILL});
  FERRY_RETURN_IF_ERROR(pid.status());
  ranks_.push_back({.pid = *pid, .end = {}});
  if (rank == 0) {
    stdin_.Start(std::move(in->write));  // the others' input ends at once
  }
  const std::string label = Label(rank, settings_);
  for (auto [fd, sink] : {std::pair{&out->read, &out_}, std::pair{&err->read, &err_}}) {
    fcntl(fd->get(), F_SETFL, O_NONBLOCK);
    streams_.push_back({std::move(*fd), LineSplitter(label), sink});
  }
  return {};
}

int Supervisor::Run() {
  OnChildEnd();  // for what ended before this began to listen
  while (Running() > 0) {
    Poll();
  }
  for (const Rank& rank : ranks_) {
    Reap(rank.pid);  // and what it left in its process group, so that its streams end
  }
  ranks_.clear();
  DrainStreams();
  phase_ = Phase::kRunning;
  deadline_ns_ = 0;
  interrupted_ = true;
  // Whoever reads the output may be slow; one more signal ends the waiting.
  while (phase_ == Phase::kRunning && (!out_.empty() || !err_.empty())) {
    Poll();
  }
  const bool daemon_failed =
      std::any_of(daemons_->begin(), daemons_->end(),
                  [](const PrivateDaemon& daemon) { return daemon.end_was_reported(); });
  return exit_code_ == 0 && daemon_failed ? 1 : exit_code_;
}

void Supervisor::Poll() {
  std::vector<pollfd> fds = {{signals_->fd(), POLLIN, 0},
                             stdin_.Interest(),
                             {out_.empty() ? -1 : out_.fd(), POLLOUT, 0},
                             {err_.empty() ? -1 : err_.fd(), POLLOUT, 0}};
  const size_t first_stream = fds.size();
  for (const Stream& stream : streams_) {
    fds.push_back({stream.sink->IsFull() ? -1 : stream.fd.get(), POLLIN, 0});
  }
  const int ready = poll(fds.data(), fds.size(), PollTimeoutMs());
  OnTimeout();
  if (ready <= 0) {
    return;
  }
  for (size_t i = 0; i < streams_.size(); ++i) {
    if (fds[first_stream + i].revents != 0) {
      ReadStream(&streams_[i]);
    }
  }
  if (fds[1].revents != 0) {
    stdin_.Advance();
  }
  if (fds[0].revents != 0) {
    while (const std::optional<int> signal = signals_->Next()) {
      OnSignal(*signal);
    }
  }
  FlushSinks();
}

int Supervisor::PollTimeoutMs() const {
  uint64_t next_ns = UINT64_MAX;
  for (const uint64_t time_ns : {deadline_ns_, report_ns_}) {
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
  if (report_ns_ != 0 && now_ns >= report_ns_) {
    ReportFailures();
  }
  if (deadline_ns_ != 0 && now_ns >= deadline_ns_) {
    phase_ == Phase::kRunning ? Stop(SIGTERM) : Kill();
  }
}

void Supervisor::OnSignal(int signal) {
  switch (signal) {
    case SIGCHLD:
      OnChildEnd();
      return;
    case SIGINT:  // a rank may catch the first one; the second is meant
      interrupted_ ? Kill() : SignalRanks(SIGINT);
      interrupted_ = true;
      return;
    case SIGTERM:
    case SIGHUP:
    case SIGQUIT:
      phase_ == Phase::kRunning ? Stop(signal) : Kill();
      return;
    case SIGTSTP:
      SignalRanks(SIGTSTP);
      raise(SIGSTOP);
      return;
    default:
      SignalRanks(signal);
  }
}

void Supervisor::OnChildEnd() {
  for (uint32_t rank = 0; rank < ranks_.size(); ++rank) {
    if (!ranks_[rank].ended && HasEnded(ranks_[rank].pid, &ranks_[rank].end)) {
      ranks_[rank].ended = true;
      if (!ranks_[rank].end.ok()) {
        failed_.push_back(rank);
      }
    }
  }
  for (PrivateDaemon& daemon : *daemons_) {
    ProcessEnd end;
    if (!daemon.end_was_reported() && HasEnded(daemon.pid(), &end)) {
      OnDaemonEnd(&daemon, end);
    }
  }
  // Its peers may see that a rank dies, and end, before the kernel is done with it. So a rank that
  // exited by itself waits for one that was killed, which then is the cause.
  const auto killed = std::stable_partition(failed_.begin(), failed_.end(), [this](uint32_t rank) {
    return ranks_[rank].end.signal != 0;
  });
  if (killed != failed_.begin() || Running() == 0) {
    ReportFailures();
  } else if (!failed_.empty() && report_ns_ == 0) {
    report_ns_ =
        MonotonicNs() + (settings_.keep_going ? kPatientCauseWaitMs : kCauseWaitMs) * kNsPerMs;
  }
}

// Reports the first failure and ends the other ranks; all failures, if they are to go on.
void Supervisor::ReportFailures() {
  report_ns_ = 0;
  for (const uint32_t rank : std::exchange(failed_, {})) {
    if (exit_code_ != 0 && !settings_.keep_going) {
      return;
    }
    const ProcessEnd& end = ranks_[rank].end;
    exit_code_ = exit_code_ == 0 ? ShellCode(end) : exit_code_;
    std::string text = "rank " + std::to_string(rank) + " (pid " +
                       std::to_string(ranks_[rank].pid) + ") " + Describe(end);
    if (!settings_.keep_going && phase_ == Phase::kRunning) {
      if (const uint32_t others = Running(); others > 0) {
        text += "; ending the other " + (others > 1 ? std::to_string(others) + " ranks" : "rank");
      }
      Stop(SIGTERM);
    }
    Say(text);
  }
}

void Supervisor::OnDaemonEnd(PrivateDaemon* daemon, const ProcessEnd& end) {
  daemon->MarkEndReported();
  Say(daemon->Name() + " " + Describe(end) + " while the job ran" + daemon->LastWords());
  // Its ranks learn it from libferry and end by themselves; those that do not are ended.
  if (phase_ == Phase::kRunning && deadline_ns_ == 0) {
    deadline_ns_ = MonotonicNs() + settings_.grace_ms * kNsPerMs;
  }
}

void Supervisor::ReadStream(Stream* stream) {
  char bytes[kBlockBytes];
  const ssize_t size = read(stream->fd.get(), bytes, sizeof(bytes));
  if (size > 0) {
    stream->lines.Feed({bytes, static_cast<size_t>(size)}, stream->sink->text());
  } else if (size == 0 || (errno != EINTR && errno != EAGAIN)) {
    stream->lines.Finish(stream->sink->text());
    stream->fd.Reset();
  }
}

void Supervisor::FlushSinks() {
  err_.Flush();
  if (const int error_number = out_.Flush(); error_number != 0 && phase_ == Phase::kRunning) {
    Say(std::string("cannot write to standard output: ") + std::strerror(error_number));
    exit_code_ = exit_code_ != 0 ? exit_code_ : 1;
    Stop(SIGTERM);
  }
}

// All ranks and their groups are gone. Only a process that left its group may still hold a stream
// open; what it writes from now on is not waited for.
void Supervisor::DrainStreams() {
  for (Stream& stream : streams_) {
    for (int block = 0; block < kDrainBlocks && stream.fd.valid(); ++block) {
      ReadStream(&stream);
    }
    stream.lines.Finish(stream.sink->text());
  }
  streams_.clear();
  stdin_ = StdinForwarder();
}

void Supervisor::SignalRanks(int signal) {
  for (const Rank& rank : ranks_) {
    if (!rank.ended) {
      kill(-rank.pid, signal);
    }
  }
}

void Supervisor::Stop(int signal) {
  phase_ = Phase::kStopping;
  deadline_ns_ = MonotonicNs() + settings_.grace_ms * kNsPerMs;
  SignalRanks(signal);
  SignalRanks(SIGCONT);  // a stopped rank could not see the signal
}

void Supervisor::Kill() {
  phase_ = Phase::kKilled;
  deadline_ns_ = 0;
  SignalRanks(SIGKILL);
}

void Supervisor::Say(const std::string& text) { *err_.text() += "ferryrun: " + text + "\n"; }

uint32_t Supervisor::Running() const {
  return static_cast<uint32_t>(
      std::count_if(ranks_.begin(), ranks_.end(), [](const Rank& rank) { return !rank.ended; }));
}

}  // namespace ferry::tools
