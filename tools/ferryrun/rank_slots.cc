#include "tools/ferryrun/rank_slots.h"

#include <algorithm>
#include <utility>

namespace ferry::tools {

std::string RankSlots::PidText(uint32_t rank) const {
  const Rank& one = ranks_[rank];
  return std::to_string(one.pid) + (one.host != nullptr ? " on " + one.host->Title() : "");
}

uint32_t RankSlots::Lose(const RemoteHost* host) {
  uint32_t lost = 0;
  for (Rank& rank : ranks_) {
    if (rank.host == host) {
      lost += std::exchange(rank.ended, true) ? 0 : 1;
    }
  }
  return lost;
}

uint32_t RankSlots::Running() const {
  return static_cast<uint32_t>(
      std::count_if(ranks_.begin(), ranks_.end(), [](const Rank& rank) { return !rank.ended; }));
}

std::string RankSlots::RunningText() const {
  const uint32_t running = Running();
  return running == 1 ? "the rank" : "the " + std::to_string(running) + " ranks";
}

std::vector<RankSlots::Ended> RankSlots::TakeEnds() {
  std::vector<Ended> ended;
  if (here_ == nullptr) {
    return ended;
  }
  here_->Receive();
  for (uint32_t rank = 0; rank < ranks_.size(); ++rank) {
    if (ranks_[rank].host == nullptr && !ranks_[rank].ended) {
      if (const std::optional<ProcessEnd> end = here_->EndOf(ranks_[rank].pid)) {
        ended.push_back({rank, *end});
      }
    }
  }
  return ended;
}

void RankSlots::Signal(int signal) {
  if (here_ != nullptr) {
    here_->Signal(signal);
  }
}

void RankSlots::End(const std::vector<pid_t>& spared) {
  if (here_ == nullptr) {
    return;
  }
  here_->Finish();
  if (here_->lost()) {
    here_->EndAll(spared);
  }
}

void RankSlots::Watch(uint64_t now_ns) {
  if (!IsWatched() || libraries_.next_ns() == 0 || now_ns < libraries_.next_ns()) {
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

std::string RankSlots::ForeignLibraryText() const {
  const std::string foreign = ranks_.size() > 1 && !have_others_met_ ? libraries_.Foreign() : "";
  if (foreign.empty()) {
    return "";
  }
  return "none of the " + std::to_string(ranks_.size()) +
         " ranks joined the job: each ran alone, as a job of one rank, for they use another MPI "
         "library, " +
         foreign +
         "; build the program with Ferry's mpicc (ferrycc), or have it load Ferry's "
         "libmpi_abi.so.1";
}

}  // namespace ferry::tools
