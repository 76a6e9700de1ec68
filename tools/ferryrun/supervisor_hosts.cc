// The part of Supervisor that deals with other hosts: it asks their agents, stops them, and gives up
// those that are lost.
#include <signal.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/clock.h"
#include "common/counted.h"
#include "tools/ferryrun/exit_codes.h"
#include "tools/ferryrun/supervisor.h"

namespace ferry::tools {
namespace {

constexpr uint64_t kNsPerMs = 1'000'000;
// So long nothing comes from an agent that is asked.
constexpr uint64_t kAnswerNs = 60'000'000'000;

}  // namespace

// ---- Questions ----------------------------------------------------------------------------------

// An agent answers one question after the other. The answers of one that was given up have another
// number.
struct Supervisor::ProfileQuestion {
  const RemoteHost* host;
  uint32_t number;
  const TakeProfilePart& take;
  uint64_t deadline_ns;
  bool is_taken = true;  // the parts that come
  std::optional<Status> end = {};
};

Status Supervisor::AskProfile(RemoteHost* host, const control::JobProfileRequest& request,
                              const TakeProfilePart& take) {
  ProfileQuestion question{host, ++questions_, take, MonotonicNs() + kAnswerNs};
  const uint32_t signals_before = ending_signals_;
  question_ = &question;
  host->Send(FrameKind::kAskProfile, question.number, request.SerializeAsString());
  while (!question.end.has_value()) {
    const std::vector<RemoteHost*> open = hosts_.Open();
    if (std::find(open.begin(), open.end(), host) == open.end()) {
      question.end = {ErrorCode::kNodeUnreachable, host->Title() + " is lost"};
    } else if (ending_signals_ != signals_before) {
      question.end = {ErrorCode::kCancelled, "interrupted"};
    } else if (MonotonicNs() >= question.deadline_ns) {
      question.end = {ErrorCode::kTimeout, host->Title() + " does not answer"};
    } else {
      Poll();
    }
  }
  question_ = nullptr;
  return *question.end;
}

void Supervisor::OnProfile(const RemoteHost& host, const Frame& frame) {
  if (question_ == nullptr || question_->host != &host || question_->number != frame.rank) {
    return;
  }
  question_->deadline_ns = MonotonicNs() + kAnswerNs;
  control::JobProfilePart part;
  if (frame.kind == FrameKind::kProfileEnd) {
    question_->end = frame.payload.empty() ? Status() : ReadFailed(frame);
  } else if (!part.ParseFromString(frame.payload)) {
    question_->end = {ErrorCode::kCorrupt, host.Title() + " sends what is no part of a profile"};
  } else if (question_->is_taken) {
    question_->is_taken = question_->take(part);
  }
}

uint64_t Supervisor::QuestionEndNs() const {
  return question_ == nullptr ? 0 : question_->deadline_ns;
}

// ---- Ends ---------------------------------------------------------------------------------------

// Their agents end what is left there, and the last output comes.
void Supervisor::StopHosts() {
  std::map<const RemoteHost*, RankExits> exits;
  for (uint32_t rank = 0; rank < ranks_.size(); ++rank) {
    lives_.CountExit(rank, &exits[ranks_.HostOf(rank)]);
  }
  for (RemoteHost* host : hosts_.Open()) {
    exits[host].job = ExitCode();
    host->Send(FrameKind::kStop, 0, TextOf(exits[host]));
  }
  phase_ = Phase::kStopping;
  deadline_ns_ = MonotonicNs() + (settings_.grace_ms + kHostMarginMs) * kNsPerMs;
  while (phase_ == Phase::kStopping && !hosts_.Open().empty()) {
    Poll();
  }
  for (RemoteHost* host : hosts_.Open()) {
    Say(host->Title() + " did not stop its daemon in time, and is given up");
  }
}

void Supervisor::OnStartFailure(const RemoteHost& host, const Frame& frame) {
  const Status why = ReadFailed(frame);
  if (frame.rank < ranks_.size()) {
    ranks_.MarkEnded(frame.rank);
  }
  if (!exit_code_.has_value()) {
    Decide(why.code() == ErrorCode::kNotFound ? kNotFound : kNotExecutable);
    Say(host.Title() + ": " + why.message());
  }
  if (phase_ == Phase::kRunning) {
    Stop(SIGTERM);
  }
}

void Supervisor::OnLostHosts(const JobHosts::Lost& lost) {
  std::vector<const RemoteHost*> named;
  uint32_t ranks = 0;
  for (const RemoteHost* host : lost.hosts) {
    if (const uint32_t of_host = ranks_.Lose(host); of_host > 0) {
      named.push_back(host);
      ranks += of_host;
    }
  }
  if (ranks == 0) {
    return;
  }
  Decide(1);
  Say(lost.Sentence(named) + (named.size() == 1 ? "; its " : "; their ") + Counted(ranks, "rank") +
      (ranks == 1 ? " counts as failed" : " count as failed"));
  if (phase_ == Phase::kRunning) {
    Stop(SIGTERM);
  }
}

// The launcher or the relay that leads there may be stopped, or the network gone: no more is heard
// of these ranks.
void Supervisor::GiveUpHosts() {
  deadline_ns_ = 0;
  for (RemoteHost* host : hosts_.Open()) {
    if (const uint32_t lost = ranks_.Lose(host); lost > 0) {
      hosts_.GiveUp(host);
      Decide(1);
      Say(host->Title() + " does not say that its " + Counted(lost, "rank") +
          " has been killed, and is given up");
    }
  }
}

}  // namespace ferry::tools
