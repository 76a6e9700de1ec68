// The ranks of this machine: their guard, and what is to be said of them at the end.
#include <signal.h>
#include <string.h>

#include <string>
#include <utility>
#include <vector>

#include "common/counted.h"
#include "tools/ferryrun/supervisor.h"

namespace ferry::tools {

void Supervisor::OnSlots() {
  if (slots_ == nullptr) {
    return;
  }
  slots_->Receive();
  for (uint32_t rank = 0; rank < ranks_.size(); ++rank) {
    if (ranks_[rank].host == nullptr && !ranks_[rank].ended) {
      if (const std::optional<ProcessEnd> end = slots_->EndOf(ranks_[rank].pid)) {
        ReadNotices();  // its own have come before its end
        NoteEnd(rank, *end);
      }
    }
  }
  if (slots_->lost()) {
    OnSlotsLost();
  }
  WeighFailures();
}

// The guard was killed: the kernel kills its ranks, and this function the processes that they had
// started.
void Supervisor::OnSlotsLost() {
  uint32_t lost = 0;
  for (Rank& rank : ranks_) {
    lost += rank.host == nullptr && !std::exchange(rank.ended, rank.ended || rank.host == nullptr);
  }
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
  if (slots_ == nullptr) {
    return;
  }
  slots_->Finish();
  if (slots_->lost()) {
    std::vector<pid_t> spared;
    for (const PrivateDaemon& daemon : *daemons_) {
      spared.push_back(daemon.pid());
    }
    for (const Host& host : hosts_) {
      spared.push_back(host.remote->pid());
    }
    slots_->EndAll(spared);
  }
}

void Supervisor::SayEnding() {
  if (ending_signal_ != 0) {
    uint32_t killed = 0;
    for (uint32_t rank = 0; rank < ranks_.size(); ++rank) {
      killed += ranks_[rank].ended && lives_.End(rank).signal == SIGKILL;
    }
    Say(std::string("ended by SIG") + sigabbrev_np(ending_signal_) + ": job " + settings_.job_id +
        " has ended, with " + std::to_string(asked_) + " of " + std::to_string(settings_.ranks) +
        " ranks that still ran" +
        (killed > 0 ? "; " + std::to_string(killed) + " had to be killed" : ""));
  }
}

uint64_t Supervisor::WatchNs() const { return Watches() ? libraries_.next_ns() : 0; }

// A job of one rank is none the worse for another library.
bool Supervisor::Watches() const { return settings_.ranks > 1 && Running() > 0 && !met_; }

void Supervisor::WatchLibraries(uint64_t now_ns) {
  if (!Watches() || libraries_.next_ns() == 0 || now_ns < libraries_.next_ns()) {
    return;
  }
  std::vector<pid_t> running;
  for (const Rank& rank : ranks_) {
    if (rank.host == nullptr && !rank.ended) {
      running.push_back(rank.pid);
    }
  }
  libraries_.Look(now_ns, running);
}

void Supervisor::SayForeignLibrary() {
  const std::string foreign = settings_.ranks > 1 && !met_ ? libraries_.Foreign() : "";
  if (!foreign.empty()) {
    Say("none of the " + std::to_string(settings_.ranks) +
        " ranks joined the job: each ran alone, as a job of one rank, for they use another MPI "
        "library, " +
        foreign +
        "; build the program with Ferry's mpicc (ferrycc), or have it load Ferry's "
        "libmpi_abi.so.1");
  }
}

}  // namespace ferry::tools
