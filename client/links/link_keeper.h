// The direct links of this rank: does what the daemon orders, turns the core that carries them, and
// gives back what is idle.
//
// The library that has that core (client/direct) is opened at the first order for a link. A rank
// whose daemon allows no links has no LinkKeeper; one that has none just now pays one load for each
// step of the engine.
//
// A rank says that it uses a link (kUsed) once the two are connected, and not before: a firewall
// that swallows connections, or a peer that does not answer, costs the link and no message. The
// rank that hears of the other one's address last, with kUse, makes the connection.
//
// The engine knows which direction takes which path (PeerPaths::UseLink). Operations under way by
// a link end before the engine hears of the link's end: so a request never ends while the core
// still reaches its memory. For that each turn first looks for peers that are gone.
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
  // A peer that could not be called is called again after this pause, which grows with each time.
  static constexpr uint64_t kFirstCallPauseNs = 1'000'000'000;
  static constexpr uint64_t kLongestCallPauseNs = 600'000'000'000;
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
  // This rank's end of a link.
  struct End {
    uint64_t link = 0;  // its number; 0: it is over
    // The order that was not answered yet, and the time until which it is tried.
    std::optional<attach::LinkOrder> order;
    uint64_t deadline_ns = 0;
    bool is_connected = false;  // the core has it, and has seen no end of it
    bool had_route = false;     // the core has had it
    bool calls = false;         // this rank makes the connection
    bool was_used = false;      // ever
    uint32_t cuts = 0;          // PeerPaths::CutsApplied when it was first
    bool is_refused = false;    // this rank does not use it
    bool is_used = false;       // the daemon has allowed it, and has not been told of its return
    bool is_returning = false;  // the direction goes back
    bool is_ending = false;     // the daemon has ended it: it is dropped once it is free
    bool is_closed = false;     // by the peer, when nothing took it: no reason to worry
    bool is_given_up = false;   // the daemon has been told that it cannot be used any more
    std::string trouble;        // how it was lost
    uint64_t traffic = 0;       // TrafficTo, at the last look,
    uint64_t active_ns = 0;     // time at which it last changed, or an operation was under way
    uint64_t due_ns = 0;        // the next look while it waits for something
    uint64_t pause_ns = 0;
  };

  struct LinkDown {
    uint32_t peer;
    std::string text;
  };

  // A peer that could not be called.
  struct Failure {
    uint64_t until_ns = 0;  // it is not called again before
    uint64_t pause_ns = 0;
    std::string text;
  };

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

  // The steps of Look (link_keeper_orders.cc). All but the first two are called under the lease.
  void TakeOrders();
  uint64_t CountRoom() const;
  void OpenEndpoint();
  void Obey(const attach::LinkOrder& order, uint64_t now_ns, engine::Effects& effects);
  void Open(const attach::LinkOrder& order, uint64_t now_ns);
  void Use(const attach::LinkOrder& order, uint64_t now_ns);
  void Leave(uint32_t peer, End* end, engine::Effects& effects);
  void EndLink(const attach::LinkOrder& order, engine::Effects& effects);
  void Forget(const attach::LinkOrder& order);
  uint64_t LookAfterAll(uint64_t now_ns, engine::Effects& effects);
  uint64_t LookAfter(uint32_t peer, End* end, uint64_t now_ns, engine::Effects& effects);
  void CarryOn(uint32_t peer, End* end, uint64_t now_ns, engine::Effects& effects);
  Status MayHaveLinks() const;
  Status MayUse() const;
  Status Reach(const attach::LinkOrder& order, End* end, uint64_t now_ns);
  Status Connect(const attach::LinkOrder& order, End* end);
  ErrorCode ConnectionTo(uint32_t peer, const End& end, std::string* why);
  Status TakePath(uint32_t peer, End* end, uint64_t now_ns, engine::Effects& effects);
  void NoteFailure(uint32_t peer, const std::string& text, uint64_t now_ns);
  static uint64_t Later(End* end, uint64_t now_ns);
  void Say(attach::LinkEvent event, uint32_t peer, uint64_t link, uint32_t flags = 0);
  void SayOpened(uint32_t peer, uint64_t link);
  void SayLinkDown(uint32_t peer, uint64_t link, const std::string& text);
  void SayRefused(const attach::LinkOrder& order, const Status& why);
  void SayRefused(uint32_t peer, uint64_t link, const Status& why);
  static attach::LinkReply ReplyOf(attach::LinkEvent event, uint32_t peer, uint64_t link);

  void Disconnect(uint32_t peer, End* end, ErrorCode error);
  void Settle(engine::Effects& effects);
  void CheckDeaths();
  void CheckConnections();
  void TakeLinksDown(engine::Effects& effects);
  bool TellGivenUp(uint32_t peer, End* end);
  bool MayWant(uint32_t peer, const End& end) const;
  // Returns true if the rank has been told of a cut from the peer since it used the link: then no
  // request of it waits for the news that the link is lost.
  bool WasCut(uint32_t peer, const End& end) const {
    return end.was_used && progress_.paths().CutsApplied(peer) != end.cuts;
  }
  uint64_t TrafficTo(uint32_t peer) const;

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
  std::unique_ptr<DirectLinks> links_;
  std::map<uint32_t, End> ends_;            // by peer; only Look adds and removes some
  std::map<uint32_t, Failure> failures_;    // by peer
  std::vector<attach::LinkReply> replies_;  // that Look is to send
  bool is_leaving_ = false;
  uint32_t awaited_ = 0;                // ends that are not connected yet, or were not used since
  uint32_t connecting_ = 0;             // of these, those that the daemon wants to be used
  engine::Effects* effects_ = nullptr;  // of the turn under way
  std::vector<LinkDown> links_down_;    // in it
  uint32_t deaths_seen_ = 0;
  uint32_t serves_ = 0;              // not 0: Serve was called
  uint32_t gives_up_ = 0;            // not 0: GiveUpLinks was
  std::vector<uint32_t> forgotten_;  // regions
  std::map<uint32_t, HostRegion> exposed_;
  uint32_t last_exposed_ = 0;
  UniqueFd call_;
  LinkThread thread_;
};

}  // namespace ferry::client
