// The direct links of one job, as this daemon knows them: between ranks here and ranks of other
// nodes. Here they are asked for, granted, counted and taken back; the ranks' own processes carry
// the messages (docs/direct_links.md).
//
// Of the two daemons of a link one leads: that of the rank with the smaller number. Only it begins
// links, numbers them and ends them, so the two never do so at the same time. A link is made in
// this order, so that nothing comes to an end that does not know its peer yet:
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
// Calling thread: the control thread.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/status.h"
#include "daemon/plane/data_plane.h"
#include "daemon/session/session.h"
#include "proto/attach_protocol.h"
#include "proto/control.pb.h"

namespace ferry::daemon {

// What the book asks of its surroundings.
class LinkCalls {
 public:
  virtual ~LinkCalls() = default;
  // Hands news on to another node of the job. OnTold follows only if the node refuses them.
  virtual void Tell(uint32_t node, const control::LinkNews& news) = 0;
  // Gives an order to a rank here; its header is filled in on the way.
  virtual void Order(uint32_t rank, const attach::LinkOrder& order) = 0;
  // Whether ranks here and there may have links: kOk, or why not.
  virtual Status MayLink(uint32_t node) const = 0;
  // Takes one link of the job's user. kLimitExceeded.
  virtual StatusOr<QuotaHold> TakeQuota() = 0;
  // A number that changes with every message between a rank here and one elsewhere.
  virtual uint64_t Traffic(uint32_t rank, uint32_t peer) const = 0;
  // Whether their link has long messages under way, which change that number only as they begin.
  virtual bool HasTransfers(uint32_t rank, uint32_t peer) const = 0;
  // Fails what a rank here has under way with a rank elsewhere, as after a cut.
  virtual void Part(uint32_t rank, uint32_t peer) = 0;
  // Whether that is over.
  virtual bool IsParted(uint32_t rank, uint32_t peer) = 0;
  // Whether messages pass between the two, which are parted, again.
  virtual bool AreRejoined(uint32_t rank, uint32_t peer) = 0;
};

inline constexpr uint32_t kAnyRank = UINT32_MAX;

struct LinkLimits {
  uint64_t per_rank = 64;
  uint64_t per_job = 0;  // of the ranks here; 0: none
  // A link that has carried nothing for so long may give way to another one of its rank.
  uint64_t idle_ns = 0;
};

enum class LinkState {
  kNone,     // there is none: never was, has ended, or was refused
  kAsked,    // the leader has been asked
  kOpening,  // the rank here makes its end
  kWaiting,  // for the other end
  kUsing,    // the rank here connects
  kUp,
  kEnding,  // the rank here lets go of it
  kBroken,
};
// "up", for people.
const char* LinkStateText(LinkState state);

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

  // A rank here wants a link to a rank elsewhere, or wants to use the one that there is again.
  void Ask(uint32_t rank, uint32_t peer, uint64_t now_ns);
  // A rank here answers an order, or says that a link broke. kCorrupt: no correct rank says so.
  Status OnReply(uint32_t rank, const attach::LinkReply& reply, uint64_t now_ns);
  // News of another node. kInvalidArgument: they make no sense.
  Status OnNews(uint32_t node, const control::LinkNews& news, uint64_t now_ns);
  // The node has refused the news, or never will take them.
  void OnRefused(const control::LinkNews& news, const Status& status, uint64_t now_ns);
  // Goes on with what has to wait for the data plane. Call it now and then.
  void OnTick(uint64_t now_ns);
  // A rank, anywhere, is gone; those here let go of their links to it.
  void OnRankEnded(uint32_t rank, ErrorCode error, uint64_t now_ns);
  // A node is cut off, and so are its ranks. When it is back links are made anew.
  void OnNodeCut(uint32_t node, uint64_t now_ns);
  // The administrator takes links back: all of the job, of one rank here, or one
  // (kAnyRank for `rank` and `peer`). From then on these pairs get none, also those that
  // have had none yet, unless `may_ask_again`; the last order that names a pair counts. Returns how
  // many there are.
  uint32_t TakeBack(uint32_t rank, uint32_t peer, bool may_ask_again, uint64_t now_ns);
  // The job was aborted: there are no links any more, and nobody is told.
  void Clear();

  // Ends that count against the limits: of the job's ranks here, or of one of them.
  uint64_t links() const { return links_; }
  uint64_t LinksOf(uint32_t rank) const;
  // kPermissionDenied: the administrator lets the pair have none.
  Status CheckBars(uint32_t rank, uint32_t peer) const;
  std::vector<LinkView> Views() const;

 private:
  using Key = std::array<uint64_t, 2>;
  // A rank here that has asked asks no more until it is told kUse or kRefuse.
  enum class Wish {
    kNone,      // it has been told
    kWaiting,   // for what becomes of the link that is being made
    kDeferred,  // until the link has been returned, or is over
    kTold,      // for the answer of the leader, which has been asked
  };
  // The end of a rank here.
  struct Entry {
    uint32_t rank = 0;
    uint32_t peer = 0;
    LinkState state = LinkState::kNone;
    uint64_t link = 0;  // the last one's number
    uint64_t since_ns = 0;
    QuotaHold quota;
    bool counted = false;    // in links_, and for its rank
    uint64_t traffic = 0;    // when that was looked at last,
    uint64_t active_ns = 0;  // and when it had changed, or something was under way
    Key receive_key{};       // in packets to the rank here
    std::string peer_address;
    Key send_key{};
    // Use and return.
    uint32_t round = 0;  // of the use that the leader has allowed last
    bool is_returned = false;
    bool is_peer_returned = false;  // the leader alone
    bool is_returning = false;      // asked back, so not to be used again
    Wish wish = Wish::kNone;        // of the rank here,
    bool is_peer_wanting = false;   // and of the peer (the leader alone)
    // The leader wants another link, but the rank here has not let go of this one yet.
    std::optional<control::LinkNews> next;
    // A break.
    bool is_end_ordered = false;
    bool is_parting = false;
    bool is_parted = false;
    bool is_peer_parted = false;
    uint64_t parted_link = 0;  // the last one of which the peer has said that it is parted
    uint64_t joined_link = 0;  // the last one after which the two were parted, and joined again

    uint32_t asked = 0;
    std::string why;
  };
  using Name = std::pair<uint32_t, uint32_t>;  // rank here, peer
  // What the administrator has said of some pairs.
  struct Bar {
    uint32_t rank;  // kAnyRank: any
    uint32_t peer;
    bool is_barred;
    bool Covers(uint32_t one, uint32_t other) const {
      return (rank == kAnyRank || rank == one) && (peer == kAnyRank || peer == other);
    }
  };

  bool IsLocal(uint32_t rank) const { return plan_.node_of_rank[rank] == plan_.node; }
  static bool Leads(const Entry& entry) { return entry.rank < entry.peer; }
  Entry& At(uint32_t rank, uint32_t peer);
  void Enter(Entry& entry, LinkState state);
  Status Check(const Entry& entry);
  bool MakeRoom(uint32_t rank);
  void LookAtTraffic(Entry& entry);
  Status Grant(Entry& entry);
  void LetGo(Entry& entry);

  static std::string PairText(uint32_t rank, uint32_t peer);
  static std::string Printable(std::string text);
  static control::LinkNews NewsOf(const Entry& entry, control::LinkNews::Kind kind);
  void Tell(const Entry& entry, const control::LinkNews& news);
  void Tell(const Entry& entry, control::LinkNews::Kind kind);
  void TellEnd(const Entry& entry, control::LinkNews::Kind kind, const attach::LinkReply& reply);
  void TellRefusal(const Entry& entry, uint64_t link, const Status& why);
  void TellRound(const Entry& entry, control::LinkNews::Kind kind);
  static attach::LinkOrder OrderOf(const Entry& entry, attach::LinkOp op);
  void Order(const Entry& entry, attach::LinkOp op, ErrorCode code = ErrorCode::kOk);
  void OrderWithPeer(const Entry& entry, attach::LinkOp op);
  void OrderUse(Entry& entry);

  void Begin(Entry& entry);
  static void DrawKey(Entry& entry);
  void Refuse(Entry& entry, const Status& why);
  void RefuseWish(Entry& entry, ErrorCode code);
  void AskAgain(Entry& entry);
  void Return(Entry& entry, bool tell);
  void TryEnd(Entry& entry);
  void End(Entry& entry, ErrorCode code);
  void Break(Entry& entry, const std::string& text = {});
  void EndBroken(Entry& entry);
  void Part(Entry& entry);
  void LookAfter(Entry& entry);

  // What ranks here say (link_book_ranks.cc).
  void Seek(Entry& entry);
  void UseAgain(Entry& entry);
  Status OnOpened(Entry& entry, const attach::LinkReply& reply);
  void OnUsed(Entry& entry);
  void OnCannot(Entry& entry, const Status& why);
  void OnReturned(Entry& entry);
  void OnEnded(Entry& entry, bool was_used);
  void OnLost(Entry& entry, const std::string& text);

  // What the daemons of other nodes say (link_book_news.cc).
  Status CheckNews(uint32_t node, const control::LinkNews& news) const;
  void OnAsked(Entry& entry);
  void OnWanted(Entry& entry, const control::LinkNews& news);
  void OnPeerOpened(Entry& entry, const control::LinkNews& news);
  void OnPeerRefused(Entry& entry, uint64_t link, const Status& why);
  void AllowPeer(Entry& entry);
  void OnPeerUsed(Entry& entry, uint32_t round);
  void OnPeerReturned(Entry& entry, uint32_t round);
  void OnPeerEnded(Entry& entry, uint64_t link);
  void OnPeerBroken(Entry& entry);
  void OnPeerParted(Entry& entry, uint64_t link);

  const JobPlan& plan_;
  LinkCalls& calls_;
  const LinkLimits limits_;
  uint64_t now_ns_ = 0;  // of the call that runs
  std::map<Name, Entry> entries_;
  std::vector<Bar> bars_;  // the last that covers a pair counts
  uint64_t links_ = 0;
  std::map<uint32_t, uint64_t> links_of_;  // by rank here
  std::set<uint32_t> ended_;               // ranks, anywhere
};

}  // namespace ferry::daemon
