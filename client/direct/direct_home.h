// A rank as the home of a progress core, which serves its direct links (direct_api.h).
//
// To its core this rank is a node, and so is every other rank of the job. A rank with a direct link
// is a node with a route. The core knows nothing of ranks without a link, and the engine has no
// commands for them in to_link.
//
// Messages lie where the program has them: the core reads and writes the rank's memory by address.
// Where the network pins memory, long data stay registered with it until the program unmaps that
// memory (memory_monitor.h). Short data, and all data where the system does not report unmapping,
// go through blocks of staging memory.
//
// Calling thread: as direct_api.h says.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "client/direct/direct_api.h"
#include "client/direct/local_copier.h"
#include "client/direct/memory_monitor.h"
#include "common/status.h"
#include "common/unique_fd.h"
#include "common/zeroed_array.h"
#include "internode/core/progress_core.h"
#include "shm/counters.h"
#include "shm/lane.h"
#include "transports/api/transport.h"

namespace ferry::client {

class DirectHome final : public DirectLinks, private progress::Home {
 public:
  // `host` outlives the links. kUnsupported: the transport cannot do what a rank needs.
  static StatusOr<std::unique_ptr<DirectLinks>> Create(
      const DirectSetup& setup, DirectHost* host, std::unique_ptr<transport::Transport> transport);

  LinkAddress AddressFor(uint32_t peer) const override;
  Status Connect(uint32_t peer, const LinkRoute& route) override;
  ErrorCode ConnectionTo(uint32_t peer, bool calls, std::string* why) override;
  void End(uint32_t peer, ErrorCode error) override;
  bool IsIdle(uint32_t peer) const override;
  bool WantsOf(uint32_t peer) const override;
  void ForgetRegion(const HostRegion& region) override;
  uint32_t Turn(uint64_t now_ns) override;
  bool HasWork() const override;
  bool PrepareToSleep() override;
  int WaitFd() const override { return wait_fd_; }
  uint64_t NextTurnNs(uint64_t /*now_ns*/) const override {
    return next_turn_ns_.load(std::memory_order_relaxed);
  }

 private:
  // A link that the core has lost in this turn.
  struct LinkDown {
    uint64_t number;
    std::string text;
  };

  DirectHome(const DirectSetup& setup, DirectHost* host);

  // progress::Home.
  std::byte* Reach(const progress::ServedRank& rank, uint64_t address, uint64_t bytes) override;
  ErrorCode Locate(const progress::ServedRank& rank, uint64_t bytes, progress::NamedBy by,
                   shm::Location* where) override;
  ErrorCode Land(const progress::ServedRank& /*rank*/, uint32_t request, uint64_t bytes,
                 shm::Location* where) override {
    return host_.TakeLanding(request, bytes, where);
  }
  shm::ElementLock* LockOf(const progress::ServedRank& rank, uint32_t region) override;
  bool WatchesMemory() const override { return monitor_ != nullptr; }
  Status Watch(progress::MemoryRange pages) override {
    return monitor_->Watch(pages.begin, pages.end);
  }
  void TakeGone(std::vector<progress::MemoryRange>* gone) override { monitor_->TakeGone(gone); }
  void LetMatch(progress::ServedRank& rank) override;

  Status Start(const DirectSetup& setup, std::unique_ptr<transport::Transport> transport);
  Status HangBell(int transport_fd);
  progress::CoreHooks Hooks();
  uint32_t FailLinksDown(uint64_t now_ns);
  void Cut(uint32_t peer, uint64_t now_ns);
  bool IsSettled() const;
  void Count();

  DirectHost& host_;
  const std::string job_id_;
  const uint32_t rank_;
  int wait_fd_ = -1;
  UniqueFd bell_;                     // rung once memory is pinned; only if the network pins any
  UniqueFd waits_;                    // an epoll instance of the bell and the transport
  const shm::LaneConsumer commands_;  // only looked at, not taken from
  shm::Statistics statistics_;
  ZeroedArray<uint64_t> links_;  // by rank: the number of the link to it, 0: there is none
  uint64_t links_begun_ = 0;
  uint32_t links_open_ = 0;
  uint64_t stale_until_ = 0;  // commands with lower numbers may be about a link that has ended
  std::vector<LinkDown> links_down_;
  transport::Statistics counted_;  // already in the session's counters
  std::atomic<uint64_t> next_turn_ns_ = UINT64_MAX;
  // Both only if the network pins memory; the monitor only if the system has userfaultfd.
  std::shared_ptr<LocalCopier> copier_;
  std::unique_ptr<MemoryMonitor> monitor_;
  bool ends_reads_ = false;  // with the link: the transport writes no more of their data
  bool may_match_ = false;   // within Turn
  bool may_sleep_ = false;   // threads that put commands into to_link ring
  std::unique_ptr<progress::ProgressCore> core_;
};

}  // namespace ferry::client
