// The supervisor at the screen: interrupts, the size of the terminal, and last words.
#include <signal.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <utility>

#include "common/clock.h"
#include "tools/ferryrun/supervisor.h"

namespace ferry::tools {
namespace {

constexpr size_t kMostLines = 40;  // of a host's answer

}  // namespace

// Ranks may catch the first one, and go on; the second is meant.
void Supervisor::OnInterrupt() {
  if (std::exchange(interrupted_, true)) {
    Decide(128 + SIGINT);
    if (ranks_.Running() > 0) {
      Say("interrupted again: killing " + ranks_.RunningText());
    }
    Kill();
    return;
  }
  Say("interrupted: passing SIGINT on to " + ranks_.RunningText() +
      "; a second interrupt kills what is left");
  if (phase_ == Phase::kRunning) {
    AskWhy(SIGINT);
  } else {
    SignalRanks(SIGINT);
  }
}

// Asks before the ranks are signalled, since only those that wait know for what.
void Supervisor::AskWhy(int then) {
  if (why_deadline_ns_ != 0) {  // the time of a job is over that the user interrupts
    after_why_ = SIGTERM;
    return;
  }
  after_why_ = then;
  whys_.clear();
  why_deadline_ns_ = MonotonicNs() + WhyQuestion::kLimitNs;
  if (uses_ferry_) {
    why_.Ask(settings_.run_directories, settings_.job_id);
    for (RemoteHost* host : hosts_.Open()) {
      whys_[host->Title()];
      host->Send(FrameKind::kAskWhy, 0, settings_.job_id);
    }
    hosts_that_answer_ = whys_.size();
  }
  LookAtWhy();
}

void Supervisor::OnWhy(const std::string& host, const std::string& text) {
  const auto asked = whys_.find(host);
  if (why_deadline_ns_ != 0 && asked != whys_.end() && hosts_that_answer_ > 0) {
    asked->second = text;
    --hosts_that_answer_;
    LookAtWhy();
  }
}

// Goes on with what was to happen once all have answered, or their time is over.
void Supervisor::LookAtWhy() {
  const bool is_whole = !why_.IsOpen() && hosts_that_answer_ == 0;
  if (why_deadline_ns_ == 0 || (!is_whole && MonotonicNs() < why_deadline_ns_)) {
    return;
  }
  why_deadline_ns_ = 0;
  hosts_that_answer_ = 0;
  SayWhy();
  if (phase_ != Phase::kRunning) {
    return;  // another signal came meanwhile
  }
  if (after_why_ == SIGTERM) {
    Stop(SIGTERM);
  } else {
    SignalRanks(SIGINT);
  }
}

void Supervisor::SayWhy() {
  const auto say = [this](const std::string& where, const std::string& text) {
    if (text.empty()) {
      return;
    }
    Say("what ranks wait for" + where + ", as `ferryctl why` tells it:");
    size_t begin = 0;
    for (size_t lines = 0; begin < text.size() && lines < kMostLines; ++lines) {
      const size_t end = std::min(text.find('\n', begin), text.size());
      Say("  " + text.substr(begin, end - begin));
      begin = end + 1;
    }
    if (begin < text.size()) {
      Say("  ...");
    }
  };
  say("", why_.Take());
  for (const auto& [host, text] : std::exchange(whys_, {})) {
    say(" on " + host, text);
  }
}

void Supervisor::TellDeadlocks() {
  for (const std::string& sentence : deadlocks_->Take()) {
    Say(sentence);
  }
}

// Before the ranks have the signal.
void Supervisor::ResizeTerminals() {
  if (const std::optional<TerminalSize> size = TerminalOfOutput()) {
    output_.ResizeTerminals(*size);
    hosts_.SendToAll(FrameKind::kWindow, 0, WindowPayload(*size));
  }
}

// Tells how the ranks have ended, at the end.
void Supervisor::SayEnding() {
  if (ending_signal_ != 0) {
    uint32_t killed = 0;
    for (uint32_t rank = 0; rank < ranks_.size(); ++rank) {
      killed += ranks_.HasEnded(rank) && lives_.End(rank).signal == SIGKILL;
    }
    Say(std::string("ended by SIG") + sigabbrev_np(ending_signal_) + ": job " + settings_.job_id +
        " has ended, with " + std::to_string(asked_) + " of " + std::to_string(settings_.ranks) +
        " ranks that still ran" +
        (killed > 0 ? "; " + std::to_string(killed) + " had to be killed" : ""));
  }
}

void Supervisor::SayForeignLibrary() {
  if (const std::string text = ranks_.ForeignLibraryText(); !text.empty()) {
    Say(text);
  }
}

}  // namespace ferry::tools
