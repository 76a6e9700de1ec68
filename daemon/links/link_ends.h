// The ends of direct links that the ranks of one job have on this node: their limits, and the steps
// that take them from one state to the next (link_book.h has the protocol). LinkBook decides which
// step is due.
//
// Calling thread: the control thread.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "common/status.h"
#include "daemon/links/link_calls.h"
#include "daemon/links/link_end.h"
#include "daemon/links/link_messages.h"
#include "daemon/plane/data_plane.h"
#include "proto/control.pb.h"

namespace ferry::daemon {

struct LinkLimits {
  uint64_t per_rank = 64;
  uint64_t per_job = 0;  // of the ranks here; 0: none
  // A link that has carried nothing for so long may give way to another one of its rank.
  uint64_t idle_ns = 0;
};

// The administrator's order about some pairs.
struct LinkBar {
  uint32_t rank;  // kAnyRank: any
  uint32_t peer;
  bool is_barred;
  bool Covers(uint32_t one, uint32_t other) const {
    return (rank == kAnyRank || rank == one) && (peer == kAnyRank || peer == other);
  }
};

class LinkEnds {
 public:
  using Name = std::pair<uint32_t, uint32_t>;  // rank here, peer
  using Table = std::map<Name, LinkEnd>;

  // All must outlive it.
  LinkEnds(const JobPlan& plan, LinkCalls& calls, LinkMessages& messages, LinkLimits limits);

  // The time of the event that is being handled.
  void set_now(uint64_t now_ns) { now_ns_ = now_ns; }
  uint64_t now_ns() const { return now_ns_; }

  // ---- The table ----
  Table& all() { return ends_; }
  const Table& all() const { return ends_; }
  LinkEnd& At(uint32_t rank, uint32_t peer);
  // Null: there is none.
  LinkEnd* Find(uint32_t rank, uint32_t peer);
  void Clear();

  // ---- Limits ----
  // Ends that count against them: of the job's ranks here, or of one of them.
  uint64_t links() const { return links_; }
  uint64_t LinksOf(uint32_t rank) const;
  bool IsFull(uint32_t rank) const { return LinksOf(rank) >= limits_.per_rank; }
  // Bars pairs, or lifts earlier bars: the last bar that covers a pair counts.
  void SetBar(const LinkBar& bar);
  // kPermissionDenied: the administrator lets the pair have none.
  Status CheckBars(uint32_t rank, uint32_t peer) const;
  // Notes whether the link has carried anything since the last look.
  void LookAtTraffic(LinkEnd& end);

  // ---- Beginning ----
  void Enter(LinkEnd& end, LinkState state);
  // The rank here wants a link, and there is none.
  void Seek(LinkEnd& end);
  // The other rank wants it, and this daemon leads.
  void OnAsked(LinkEnd& end);
  // The leader wants a link.
  void OnWanted(LinkEnd& end, const control::LinkNews& news);
  // Tells the rank that there is no link.
  void Refuse(LinkEnd& end, const Status& why);
  // Refuses the rank's wish, whatever becomes of the link that there may be. A rank that waits for
  // nothing is told nothing.
  void RefuseWish(LinkEnd& end, ErrorCode code);
  // A link is over: sees to the wishes that are left.
  void AskAgain(LinkEnd& end);

  // ---- Use, return and end ----
  // Lets the rank use the link, for the first time or again.
  void OrderUse(LinkEnd& end);
  // The leader lets the other rank use the link again, if that wants to and has returned it.
  void AllowPeer(LinkEnd& end);
  // Both ranks shall return their directions. `tell`: the other daemon does not know it.
  void Return(LinkEnd& end, bool tell);
  // Ends the link, if both directions have been returned. Only the leader does.
  void TryEnd(LinkEnd& end);
  void End(LinkEnd& end, ErrorCode code);
  // Forgets the link, which is over. Wishes that came meanwhile stay.
  void LetGo(LinkEnd& end);

  // ---- Breaking ----
  void Break(LinkEnd& end, const std::string& text = {});
  // Orders the rank to end its own side first, because the data plane knows nothing of what that
  // has under way; parts the two ranks once it has.
  void EndBroken(LinkEnd& end);
  void Part(LinkEnd& end);
  // Goes on with a broken link as far as the data plane has come.
  void LookAfter(LinkEnd& end);

 private:
  Status Check(const LinkEnd& end);
  bool MakeRoom(uint32_t rank);
  Status Grant(LinkEnd& end);
  void Begin(LinkEnd& end);
  static void DrawKey(LinkEnd& end);

  const JobPlan& plan_;
  LinkCalls& calls_;
  LinkMessages& messages_;
  const LinkLimits limits_;
  uint64_t now_ns_ = 0;
  Table ends_;
  std::vector<LinkBar> bars_;  // the last that covers a pair counts
  uint64_t links_ = 0;
  std::map<uint32_t, uint64_t> links_of_;  // by rank here
};

}  // namespace ferry::daemon
