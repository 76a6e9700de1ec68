// The direct links of one job, as this daemon knows them: between ranks here and ranks of other
// nodes. Here they are asked for, granted, counted and taken back; the ranks' own processes carry
// the messages (docs/direct_links.md).
//
// One of the two daemons of a link leads: that of the rank with the smaller number. It alone begins
// links, numbers them and ends them, so the two never do so at the same time. A link is made in
// this order, so that nothing reaches an end that does not know its peer yet:
//
//   leader                                     the other daemon
//   kOpen to its rank; kOpened with address
//   WANTED (address, key)                  ->  kOpen (address, keys) to its rank; kOpened
//                                          <-  OPENED (address, key)
//   kUse (address, keys) to its rank, which connects; kUsed
//   USED                                   ->  kUse to its rank
//
// Each rank then moves its own direction of the pair to the link, and returns it by itself when it
// is idle, or when it is told to. Once both have been returned the leader ends the link (ENDED).
//
// If a link breaks, messages may be lost, so the two ranks are parted: what they had under way with
// each other fails, and they begin anew, as after a cut between the nodes. The rank that lost it
// waits until the other one is parted (PARTED): if that one is dead, it is to hear of the death.
// Once both are parted, the data planes join them again.
//
// News may come twice, or out of order if an earlier message got lost: what does not fit is
// ignored, or answered such that both daemons end up alike.
//
// The book takes the answers of ranks and the news of other daemons, and decides which step is due.
// LinkEnds keeps the ends and carries the steps out; LinkMessages composes orders and news.
//
// Calling thread: the control thread.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "common/status.h"
#include "daemon/links/link_calls.h"
#include "daemon/links/link_end.h"
#include "daemon/links/link_ends.h"
#include "daemon/links/link_messages.h"
#include "daemon/plane/data_plane.h"
#include "proto/attach_protocol.h"
#include "proto/control.pb.h"

namespace ferry::daemon {

// One end of a link, for people.
struct LinkView {
  uint32_t rank = 0;
  uint32_t peer = 0;
  LinkState state = LinkState::kNone;
  uint64_t link = 0;
  uint64_t since_ns = 0;  // of that state
  bool used = false;      // the rank's direction takes it
  bool returning = false;
  uint32_t asked = 0;  // so often the rank here has asked
  std::string why;     // why the last one was refused, or has ended; may be empty
};

class LinkBook {
 public:
  // `plan` and `calls` outlive it.
  LinkBook(const JobPlan& plan, LinkCalls* calls, LinkLimits limits);
  LinkBook(const LinkBook&) = delete;
  LinkBook& operator=(const LinkBook&) = delete;

  // A rank here wants a link to a rank elsewhere, or wants to use the one that there is again.
  void Ask(uint32_t rank, uint32_t peer, uint64_t now_ns);
  // A rank here answers an order, or says that a link broke. kCorrupt: no correct rank says so.
  Status OnReply(uint32_t rank, const attach::LinkReply& reply, uint64_t now_ns);
  // News of another node. kInvalidArgument: they make no sense.
  Status OnNews(uint32_t node, const control::LinkNews& news, uint64_t now_ns);
  // The node has refused the news, or will never take them.
  void OnRefused(const control::LinkNews& news, const Status& status, uint64_t now_ns);
  // Goes on with links that wait for the data plane. Call it now and then.
  void OnTick(uint64_t now_ns);
  // A rank of any node is gone; ranks here let go of their links to it.
  void OnRankEnded(uint32_t rank, ErrorCode error, uint64_t now_ns);
  // A node is cut off: the links to its ranks end. They are made anew when it is back.
  void OnNodeCut(uint32_t node, uint64_t now_ns);
  // The administrator takes links back: all of the job, of one rank here, or one
  // (kAnyRank for `rank` and `peer`). From then on these pairs get none, also those that
  // have had none yet, unless `may_ask_again`; the last order that names a pair counts. Returns how
  // many there are.
  uint32_t TakeBack(uint32_t rank, uint32_t peer, bool may_ask_again, uint64_t now_ns);
  // The job was aborted: forgets all links, and tells no rank and no node.
  void Clear() { ends_.Clear(); }

  // Ends that count against the limits: of the job's ranks here, or of one of them.
  uint64_t links() const { return ends_.links(); }
  uint64_t LinksOf(uint32_t rank) const { return ends_.LinksOf(rank); }
  // kPermissionDenied: the administrator lets the pair have none.
  Status CheckBars(uint32_t rank, uint32_t peer) const { return ends_.CheckBars(rank, peer); }
  std::vector<LinkView> Views() const;

 private:
  bool IsLocal(uint32_t rank) const { return plan_.node_of_rank[rank] == plan_.node; }

  // Answers and reports of ranks here.
  void UseAgain(LinkEnd& end);
  Status OnOpened(LinkEnd& end, const attach::LinkReply& reply);
  void OnUsed(LinkEnd& end);
  void OnCannot(LinkEnd& end, const Status& why);
  void OnReturned(LinkEnd& end);
  void OnEnded(LinkEnd& end, bool was_used);
  void OnLinkDown(LinkEnd& end, const std::string& text);

  // News from the daemons of other nodes.
  Status CheckNews(uint32_t node, const control::LinkNews& news) const;
  void OnPeerOpened(LinkEnd& end, const control::LinkNews& news);
  void OnPeerRefused(LinkEnd& end, uint64_t link, const Status& why);
  void OnPeerUsed(LinkEnd& end, uint32_t round);
  void OnPeerReturned(LinkEnd& end, uint32_t round);
  void OnPeerEnded(LinkEnd& end, uint64_t link);
  void OnPeerBroken(LinkEnd& end);
  void OnPeerParted(LinkEnd& end, uint64_t link);

  const JobPlan& plan_;
  LinkMessages messages_;
  LinkEnds ends_;
  std::set<uint32_t> ended_;  // ranks, anywhere
};

}  // namespace ferry::daemon
