// The direct links of this rank: does what the daemon orders, turns the core that carries them, and
// gives back what is idle.
//
// The library that has that core (client/direct) is opened at the first order for a link. A rank
// whose daemon allows no links has no LinkKeeper; one that has none just now pays one load for each
// step of the engine.
//
// Which direction takes which path is the engine's to know (RankEngine::UseLink). What is under way
// by a link ends before the engine hears of it: so a request never ends while the core still
// reaches its memory. For that each turn first looks for peers that are gone.
//
// Calling thread: Look is the watcher's, Turn is for the holder of the lease; the rest may be
// called by any thread. All that changes is guarded by the lease. Look blocks for the lease, and
// once while the library is opened.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "client/core/attach_connection.h"
#include "client/core/region_table.h"
#include "client/direct/direct_api.h"
#include "client/rank/link_thread.h"
#include "client/rank/link_turns.h"
#include "client/rank/progress.h"
#include "common/status.h"
#include "common/unique_fd.h"
#include "shm/atomic.h"
#include "shm/lease.h"

namespace ferry::client {

class LinkKeeper final : public LinkTurns, private DirectHost, private LinkThread::Work {
 public:
  struct Parts {
    Progress* progress;  // all outlive it
    AttachConnection* attach;
    const RegionTable* regions;
    std::string job_id;
    attach::LinkRules rules;
    std::function<StatusOr<const DirectApi*>()> open_library;
  };
  explicit LinkKeeper(Parts parts);
  // Ends the link thread, then all links without a word. No other thread is in the library.
  ~LinkKeeper();

  // Carries out the orders that have come, and what is due. Returns in how many milliseconds it is
  // to be called again even if no order comes; -1: only then.
  int Look();
  // An eventfd that becomes readable when Look is to be called soon.
  int call_fd() const { return call_.get(); }

  uint32_t Turn(engine::Effects& effects) override;
  // Messages take the daemons again, to all peers. Calling thread: the holder of the lease.
  void LeaveAll(engine::Effects& effects);
  // From now on the link thread turns while this rank does not: for a thread that leaves the
  // library with work under way. It may be half a millisecond late.
  void Arm() {
    if (NeedsTurns()) {
      thread_.Arm();
    }
  }
  // The same at once: for a thread that is about to sleep.
  void CallThread() {
    if (NeedsTurns()) {
      thread_.Call();
    }
  }
  // The same for one that leaves a long transfer. Not with each of many: that would be dear.
  void CallThreadForLong();
  void Serve() override {
    if (shm::LoadRelaxed(serves_) == 0) {
      shm::StoreRelaxed(serves_, 1U);
      Arm();
    }
  }
  // The memory of a region is about to go: links do not reach it any more.
  void ForgetRegion(uint32_t region);

 private:
  // This rank's end of a link.
  struct End {
    uint64_t link = 0;  // its number
    bool is_connected = false;
    bool is_used = false;       // the daemon has allowed it, and has not been told of its return
    bool is_returning = false;  // the direction goes back
    bool is_ending = false;     // the daemon has ended it: once it is free it is let go of
    bool is_closed = false;     // by the peer, when nothing took it: no reason to worry
    uint64_t traffic = 0;       // TrafficTo, when that was looked at last,
    uint64_t active_ns = 0;     // and when it had changed
    uint64_t due_ns = 0;        // the next look while it waits for something
    uint64_t pause_ns = 0;
  };

  struct Lost {
    uint32_t peer;
    std::string text;
  };

  // DirectHost.
  void LetMatch() override;
  void OnLinkLost(uint32_t peer, ErrorCode error, const char* text) override;
  void OnViolation(const char* text) override;
  bool FindRegion(uint32_t region, HostRegion* found) const override;
  // LinkThread::Work.
  bool TryStep(uint32_t* done) override;
  Threads RankThreads() const override;
  uint32_t Turns() const override { return shm::LoadRelaxed(turns_); }
  bool MustStay() const override;
  bool PrepareToSleep() override;
  uint64_t NextTurnNs(uint64_t now_ns) const override;

  template <typename Action>
  void UnderLease(Action&& action);
  Status OpenEndpoint();
  void Obey(const attach::LinkOrder& order, uint64_t now_ns);
  void Open(const attach::LinkOrder& order);
  void Use(const attach::LinkOrder& order, uint64_t now_ns);
  void Leave(uint32_t peer, End* end, engine::Effects& effects);
  void Return(uint32_t peer);
  void ReturnIdlest(uint64_t now_ns);
  void EndLink(const attach::LinkOrder& order);
  void Refuse(const attach::LinkOrder& order);
  Status Connect(const attach::LinkOrder& order, End* end);
  void Disconnect(uint32_t peer, End* end, ErrorCode error);
  void Settle(engine::Effects& effects);
  void CheckDeaths();
  void TakeLost(engine::Effects& effects);
  uint64_t LookAfter(uint32_t peer, End* end, uint64_t now_ns, engine::Effects& effects);
  bool MayWant(uint32_t peer, const End& end) const;
  uint64_t TrafficTo(uint32_t peer) const;
  void Say(attach::LinkEvent event, uint32_t peer, uint64_t link, uint32_t flags = 0);
  void SayRefused(const attach::LinkOrder& order, const Status& why);
  attach::LinkReply ReplyOf(attach::LinkEvent event, uint32_t peer, uint64_t link) const;

  const Parts parts_;
  Progress& progress_;
  shm::Lease lease_;               // of threads that are not the program's
  std::optional<Status> opening_;  // what became of the library and the endpoint
  std::unique_ptr<DirectLinks> links_;
  std::map<uint32_t, End> ends_;            // by peer
  std::vector<attach::LinkReply> replies_;  // that Look is to send
  engine::Effects* effects_ = nullptr;      // of the turn under way
  std::vector<Lost> lost_;                  // in it
  uint32_t deaths_seen_ = 0;
  uint32_t turns_ = 0;               // only grows
  uint64_t called_ns_ = 0;           // when the link thread was called for a long transfer
  uint32_t serves_ = 0;              // not 0: Serve was called
  std::vector<uint32_t> forgotten_;  // regions
  UniqueFd call_;
  LinkThread thread_;
};

}  // namespace ferry::client
