// Client: progress and waiting. See client.h.
#include "client/core/progress.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>

#include "engine/transfer.h"
#include "shm/atomic.h"

namespace ferry::client {

uint32_t Client::ThreadId() {
  thread_local const auto id = static_cast<uint32_t>(gettid());
  return id;
}

// How to wait for a rank (or for any). A message from another node passes two daemons, which may
// need this core: then it waits without pauses.
shm::WaitPolicy Client::PolicyFor(int32_t peer) const {
  shm::WaitPolicy policy = wait_policy_;
  const bool local = peer < 0 ? peers_.rank_of_local.size() == size()
                              : peers_.by_rank[static_cast<uint32_t>(peer)].local;
  if (!local) {
    policy.spin_pauses = 0;
  }
  return policy;
}

// Runs one round of the engine, if nobody else is running it. True: it found something to do.
bool Client::PollOnce() {
  PostHeld();
  if (!lease_.TryAcquire(Holder())) {
    return false;
  }
  engine::Effects effects;
  const uint32_t handled = engine_->Progress(effects);
  lease_.Release(Holder());
  if (handled != 0) {
    NoteTransfers(effects);
  }
  Perform(effects);
  return handled != 0;
}

// Wakes whoever the engine named. Publishing can enter the kernel, so the lease is not held. A
// caller that goes on to wait takes the ranks that need the worker into `later`: most come by
// themselves in a moment.
void Client::Perform(engine::Effects& effects, engine::LaneSet* later) {
  if (effects.reaches_peers()) {
    effects.lanes.ForEach([this](uint32_t lane) {
      shm::Wake(peers_.Wake(peers_.rank_of_local[lane])).PublishLane(own_lane_);
    });
    effects.wakes.ForEach(
        [this](uint32_t lane) { shm::Wake(peers_.Wake(peers_.rank_of_local[lane])).Publish(); });
    if (later != nullptr) {
      effects.urgent.ForEach([later](uint32_t lane) { later->Add(lane); });
    } else {
      AskToAttend(effects.urgent);
    }
  }
  if (effects.to_daemon) {
    CallWorker({}, true);
  }
  if (effects.self && threads_) {
    wake_.Publish();
  }
}

// Calls the worker for those of the ranks that compute.
void Client::AskToAttend(const engine::LaneSet& ranks) {
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

// Asks the daemon to look after ranks that compute, and at our lane to it.
void Client::CallWorker(const engine::LaneSet& ranks, bool to_daemon) {
  bool asleep = false;
  ranks.ForEach([&](uint32_t lane) { asleep |= daemon_wake_.AnnounceLane(lane); });
  if (to_daemon) {
    asleep |= daemon_wake_.AnnounceLane(shm::DaemonLane(view_.inbox.local_size));
  }
  if (asleep) {
    eventfd_write(doorbell_.get(), 1);
  }
}

// Remembers transfers of receives that the calling thread may not be waiting for.
void Client::NoteTransfers(const engine::Effects& effects) {
  if (effects.transfer_count == 0) {
    return;
  }
  std::lock_guard lock(background_mutex_);
  background_.insert(background_.end(), effects.transfers.begin(),
                     effects.transfers.begin() + effects.transfer_count);
}

bool Client::IsTransferring(uint32_t request) const {
  return shm::LoadAcquire(requests_->Slot(request).state) ==
         static_cast<uint32_t>(shm::RequestState::kTransferring);
}

// Copies a chunk of some remembered transfer. True: it found one. The lock is held meanwhile, so
// that Forget returns only when nobody touches the request any more.
bool Client::HelpBackground() {
  if (!threads_ && background_.empty() && offered_.empty()) {
    return false;
  }
  std::lock_guard lock(background_mutex_);
  if (background_.empty()) {
    return HelpOffered();
  }
  const uint32_t request = background_.back();
  const bool moving = IsTransferring(request);
  if (!moving || !CopyTransfer(request)) {
    background_.pop_back();
  }
  return moving;
}

// Remembers a send that its receiver cannot fetch: the sender has to copy it, and may be waiting
// for another request.
void Client::NoteOffered(uint32_t request) {
  std::lock_guard lock(background_mutex_);
  std::erase_if(offered_, [this](uint32_t other) { return !IsTransferring(other); });
  offered_.push_back(request);
}

// Call it with the lock held.
bool Client::HelpOffered() {
  std::erase_if(offered_, [this](uint32_t request) { return !IsTransferring(request); });
  for (const uint32_t request : offered_) {
    if (engine::IsLeftToSource(requests_->Transfer(request),
                               requests_->Slot(request).transfer_generation) &&
        CopyTransfer(request)) {
      return true;
    }
  }
  return false;
}

// Call it before a request's slot is reused.
void Client::Forget(uint32_t request) {
  if (threads_) {
    std::lock_guard lock(background_mutex_);
    std::erase(background_, request);
    std::erase(offered_, request);
  }
}

// Called at the end of a blocking call: hands the work that it leaves behind to the progress
// worker.
void Client::LeaveLibrary() {
  wake_.Leave();
  bool left_behind = wake_.TakeUrgent() && engine_->HasArrivals();
  if (!left_behind && (threads_ || !background_.empty())) {
    std::lock_guard lock(background_mutex_);
    std::erase_if(background_, [this](uint32_t request) { return !IsTransferring(request); });
    left_behind = !background_.empty();
    background_.clear();
  }
  if (left_behind) {
    engine::LaneSet self;
    self.Add(own_lane_);
    CallWorker(self, false);
  }
}

}  // namespace ferry::client
