#include "client/p2p/progress.h"

#include <sys/eventfd.h>
#include <unistd.h>

namespace ferry::client {

Progress::Progress(const Parts& parts)
    : view_(parts.view),
      peers_(*parts.peers),
      engine_(view_, peers_, parts.engine, engine::Runner::kRank),
      lease_(&view_.layout->lease),
      wake_(view_.inbox.wake()),
      daemon_wake_(&view_.layout->daemon_wake),
      own_lane_(parts.own_lane),
      holder_(ThreadId()),
      doorbell_(parts.doorbell),
      threads_(parts.threads),
      wait_policy_(parts.wait_policy) {
  if (!threads_) {
    lease_.Bias(holder_);
  }
}

uint32_t Progress::ThreadId() {
  thread_local const auto id = static_cast<uint32_t>(gettid());
  return id;
}

void Progress::SetThreads(bool threads) {
  if (threads) {
    lease_.Unbias(Holder());
    threads_ = true;
  } else {
    threads_ = false;
    lease_.Bias(Holder());
  }
}

shm::WaitPolicy Progress::PolicyFor(int32_t peer) const {
  shm::WaitPolicy policy = wait_policy_;
  if (MayBeRemote(peer)) {
    policy.spin_pauses = 0;
    policy.counts_others = links_ == nullptr || !links_->has_links();
  }
  return policy;
}

void Progress::Perform(const engine::Effects& effects, engine::LaneSet* later) {
  TellOthers(effects, later);
  if (effects.self && threads_) {
    wake_.Publish();
  }
}

void Progress::PerformElsewhere(const engine::Effects& effects) {
  TellOthers(effects, nullptr);
  const bool has_copies = effects.transfer_count != 0;
  if (has_copies) {
    shm::StoreRelease(copies_elsewhere_, 1U);  // Pairs with TakeCopiesElsewhere.
    AskToAttendSelf();                         // the program's threads may all be away
  }
  if (effects.self || has_copies) {
    wake_.Publish();
  }
}

void Progress::TellOthers(const engine::Effects& effects, engine::LaneSet* later) {
  if (effects.reaches_peers()) {
    const auto rank_of = [this](uint32_t lane) { return peers_.rank_of_local[lane]; };
    effects.lanes.ForEach(
        [&](uint32_t lane) { shm::Wake(peers_.Wake(rank_of(lane))).PublishLane(own_lane_); });
    effects.wakes.ForEach([&](uint32_t lane) { WakeRank(rank_of(lane)); });
    if (later != nullptr) {
      effects.urgent.ForEach([later](uint32_t lane) { later->Add(lane); });
    } else {
      AskToAttend(effects.urgent);
    }
  }
  if (effects.to_daemon) {
    RingDaemon();
  }
}

void Progress::AskToAttend(const engine::LaneSet& ranks) {
  engine::LaneSet attend;
  ranks.ForEach([&](uint32_t lane) {
    if (lane != own_lane_ && shm::Wake(peers_.Wake(peers_.rank_of_local[lane])).MustAttend()) {
      attend.Add(lane);
    }
  });
  if (!attend.empty()) {
    CallWorker(attend, false);
  }
}

void Progress::AskToAttendSelf() {
  engine::LaneSet self;
  self.Add(own_lane_);
  CallWorker(self, false);
}

void Progress::AnnounceCommand() {
  if (daemon_wake_.MustRing()) {
    eventfd_write(doorbell_, 1);
  }
}

// Asks the daemon to look after ranks that compute, and at our lane to it.
void Progress::CallWorker(const engine::LaneSet& ranks, bool to_daemon) {
  bool asleep = false;
  ranks.ForEach([&](uint32_t lane) { asleep |= daemon_wake_.AnnounceLane(lane); });
  if (to_daemon) {
    asleep |= daemon_wake_.AnnounceLane(shm::DaemonLane(view_.inbox.local_size));
  }
  if (asleep) {
    eventfd_write(doorbell_, 1);
  }
}

}  // namespace ferry::client
