// The direct links of this rank: does what the daemon orders, turns the core that carries them, and
// gives back what is idle.
//
// The library that has that core (client/direct) is opened at the first order for a link. A rank
// whose daemon allows no links has no LinkKeeper; one that has none just now pays one load for each
// step of the engine.
//
// Calling thread: Look is the watcher's, Turn is for the holder of the lease; the rest may be
// called by any thread. All that changes is guarded by the lease. Look blocks for some milliseconds
// for the lease, whose holder may be a process that was stopped, and once while the library is
// opened.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "client/bootstrap/attach_connection.h"
#include "client/direct/direct_api.h"
#include "client/links/link_ends.h"
#include "client/links/link_thread.h"
#include "client/memory/region_table.h"
#include "client/p2p/link_turns.h"
#include "client/p2p/progress.h"
#include "common/status.h"
#include "common/unique_fd.h"
#include "shm/atomic.h"
#include "shm/lease.h"

namespace ferry::client {

class LinkKeeper final : public LinkTurns, private DirectHost, private LinkThread::Work {
 public:
  // The time for which two ranks try to connect.
  static constexpr uint64_t kConnectTimeoutNs = 5'000'000'000;
  // Links leave one in kPartLeft of the descriptors that the process may have.
  static constexpr uint64_t kPartLeft = 4;

  struct Parts {
    Progress* progress;  // all outlive it
    AttachConnection* attach;
    const RegionTable* regions;
    std::string job_id;
    attach::LinkRules rules;
    std::function<StatusOr<const DirectApi*>()> open_library;
    // DirectHost::TakeLanding.
    std::function<ErrorCode(uint32_t request, uint64_t size_bytes, shm::Location* where)> land;
    uint64_t connect_timeout_ns = kConnectTimeoutNs;
  };
  explicit LinkKeeper(Parts parts);
  // Ends the link thread, then all links without a word. No other thread is in the library.
  ~LinkKeeper();

  // Carries out the orders that have come, and work that is due. Returns the milliseconds until the
  // next call is due even if no order comes; -1: none is due.
  int Look();
  // An eventfd that becomes readable when Look is to be called soon.
  int call_fd() const { return call_.get(); }

  uint32_t Turn(engine::Effects& effects) override;
  // Makes messages to all peers take the daemons' path again. Calling thread: the holder of the
  // lease.
  void LeaveAll(engine::Effects& effects);
  void Arm() override {
    if (NeedsTurns()) {
      thread_.Arm();
    }
  }
  // Arms the link thread at once, without a pause: for a thread that is about to sleep.
  void CallThread() {
    const bool sees_all = thread_.is_watching() && !HasWork() && !progress_.paths().AwaitsLink();
    if (NeedsTurns() && !sees_all) {
      thread_.Call();
    }
  }
  void Serve() override {
    if (shm::LoadRelaxed(serves_) == 0) {
      shm::StoreRelaxed(serves_, 1U);
      Arm();
    }
  }
  uint32_t Expose(std::byte* base, uint64_t size_bytes, shm::ElementLock* lock) override;
  void Unexpose(uint32_t segment) override;
  void GiveUpLinks() override;
  // Takes a region, whose memory is about to go, from the reach of links.
  void ForgetRegion(uint32_t region);

 private:
  // DirectHost.
  void LetMatch() override;
  void OnLinkDown(uint32_t peer, ErrorCode error, const char* text) override;
  void OnViolation(const char* text) override;
  bool FindRegion(uint32_t region, HostRegion* found) const override;
  ErrorCode TakeLanding(uint32_t request, uint64_t size_bytes, shm::Location* where) override {
    return parts_.land(request, size_bytes, where);
  }
  // LinkThread::Work.
  bool TryStep(uint32_t* done) override;
  Threads RankThreads() const override;
  uint32_t Turns() const override { return turns(); }
  bool MustStay() const override;
  bool PrepareToSleep() override;
  uint64_t NextTurnNs(uint64_t now_ns) const override;

  // The steps of Look, without the lease.
  void TakeOrders();
  uint64_t CountRoom() const;
  void OpenEndpoint();
  void ForgetByCore(const HostRegion& memory);
  void Publish();
  void CallWatcher();

  const Parts parts_;
  Progress& progress_;
  shm::Lease lease_;  // of threads that are not the program's
  // Used by Look alone.
  std::vector<attach::LinkOrder> orders_;  // not obeyed yet
  uint64_t room_ = 0;                      // the number of links for which there are descriptors
  std::optional<Status> opening_;          // the result of opening the library and the endpoint
  std::unique_ptr<DirectLinks> opened_;    // until Look has the lease
  int lease_pause_ms_ = 0;
  // Used under the lease.
  LinkEnds ends_;
  engine::Effects* effects_ = nullptr;  // of the turn under way
  uint32_t serves_ = 0;                 // not 0: Serve was called
  std::vector<uint32_t> forgotten_;     // regions
  std::map<uint32_t, HostRegion> exposed_;
  uint32_t last_exposed_ = 0;
  UniqueFd call_;
  LinkThread thread_;
};

}  // namespace ferry::client
