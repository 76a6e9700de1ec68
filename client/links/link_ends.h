// This rank's ends of direct links, each from the daemon's order to make the link until it is over:
// what an order asks for, what is due next, and what a break means for the engine.
//
// A rank says that it uses a link (kUsed) once the two are connected, and not before: a firewall
// that swallows connections, or a peer that does not answer, costs the link and no message. The
// rank that hears of the other one's address last, with kUse, makes the connection.
//
// The engine knows which direction takes which path (PeerPaths::UseLink). Operations under way by
// a link end before the engine hears of the link's end: so a request never ends while the core
// still reaches its memory.
//
// Calling thread: the holder of the rank's lease; what is marked so, also the watcher without it,
// which alone adds ends and removes them. Nothing blocks.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "client/bootstrap/attach_connection.h"
#include "client/direct/direct_api.h"
#include "client/memory/region_table.h"
#include "client/p2p/link_turns.h"
#include "client/p2p/progress.h"
#include "common/status.h"
#include "engine/effects.h"
#include "shm/atomic.h"

namespace ferry::client {

class LinkEnds {
 public:
  // A peer that could not be called is called again after this pause, which grows with each time.
  static constexpr uint64_t kFirstCallPauseNs = 1'000'000'000;
  static constexpr uint64_t kLongestCallPauseNs = 600'000'000'000;

  struct Parts {
    Progress* progress;  // all outlive it
    const LinkTurns* turns;
    const RegionTable* regions;
    attach::LinkRules rules;
    uint64_t connect_timeout_ns;  // for which two ranks try to connect
  };
  explicit LinkEnds(Parts parts);

  // Also the watcher's.
  bool is_empty() const { return ends_.empty(); }
  // How many may have no connection yet, and take a descriptor soon. Also the watcher's.
  uint64_t CountUnused() const;

  // The core that carries the links; null before Adopt.
  DirectLinks* core() const { return core_.get(); }
  void Adopt(std::unique_ptr<DirectLinks> core) { core_ = std::move(core); }
  uint32_t connected() const { return connected_; }
  bool HasWork() const {
    return awaited_ != 0 || !links_down_.empty() || (core_ != nullptr && core_->HasWork());
  }

  // Obeys an order. `room`: for how many more links there are descriptors; kOpen takes one.
  // `opening`: the result of opening the core.
  void Obey(const attach::LinkOrder& order, uint64_t* room, const Status& opening, uint64_t now_ns,
            engine::Effects& effects);
  // Does what is due. Returns when to look again; UINT64_MAX: when an order comes.
  uint64_t LookAfterAll(uint64_t now_ns, engine::Effects& effects);
  // The replies for the daemon that have come up since the last call.
  std::vector<attach::LinkReply> TakeReplies() { return std::exchange(replies_, {}); }

  // Makes messages to all peers take the daemons' path again, for the end of the job.
  void LeaveAll(engine::Effects& effects);
  // As LeaveAll, for good, and refuses links that are being made when it looks at them next.
  void GiveUp(engine::Effects& effects);
  // Returns true once GiveUp was called. Any thread, without the lease.
  bool gives_up() const { return shm::LoadRelaxed(gives_up_) != 0; }

  // Ends the core's operations with ranks that are gone, or cut off, before the engine ends its
  // requests.
  void EndDead();
  // Returns true if the watcher is to look now: ends that were being connected are, or cannot be.
  bool HaveConnected() { return connecting_ != 0 && FindConnected(); }
  // The core has lost a link, within its turn. TakeLinksDown tells the engine, after the turn;
  // false: there was none.
  void OnLinkDown(uint32_t peer, const char* text) { links_down_.push_back({peer, text}); }
  bool TakeLinksDown(engine::Effects& effects) {
    return !links_down_.empty() && TellLinksDown(effects);
  }

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

  void Open(const attach::LinkOrder& order, uint64_t* room, const Status& opening, uint64_t now_ns);
  void Use(const attach::LinkOrder& order, uint64_t now_ns);
  void Leave(uint32_t peer, End* end, engine::Effects& effects);
  void EndLink(const attach::LinkOrder& order, engine::Effects& effects);
  void Forget(const attach::LinkOrder& order);
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
  bool FindConnected();
  bool TellLinksDown(engine::Effects& effects);
  void Settle(engine::Effects& effects);
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
  std::unique_ptr<DirectLinks> core_;
  std::map<uint32_t, End> ends_;            // by peer
  std::map<uint32_t, Failure> failures_;    // by peer
  std::vector<attach::LinkReply> replies_;  // to the daemon
  bool is_leaving_ = false;
  uint32_t gives_up_ = 0;             // not 0: GiveUp was called
  uint32_t connected_ = 0;            // ends
  uint32_t awaited_ = 0;              // ends that are not connected yet, or were not used since
  uint32_t connecting_ = 0;           // of these, those that the daemon wants to be used
  std::vector<LinkDown> links_down_;  // in the turn under way
  uint32_t deaths_seen_ = 0;
};

}  // namespace ferry::client
