// The matched pairs of persistent requests of one job, as this daemon knows them
// (docs/stream_triggered.md).
//
// A pair has one key: communicator context, ranks, tag and ordinal. The daemon of the rank that
// receives pairs: it hears of sends from here directly, and of others by news from their daemons.
// For a pair between nodes it first has its own data plane take the pair, then tells the
// sender's daemon. The receive is matched only when that has answered, so no packet of a pair
// comes to a daemon that does not know it. A pair inside the node does without the data plane: the
// ranks, or their streams, move the bytes themselves.
//
// The outcome of an offer is written into the PairWords of its end. A pair ends when a side takes
// its request back, dies, or becomes unreachable: the counters of what is left of it fail.
//
// The book remembers a side that has left for as long as the other side has to hear of it: until
// the daemon there has been told or, on this node, until the other side has come and gone, too. The
// number of sides remembered for a rank is bounded, even if others are slow, cut off, or never
// come: above the bound new offers are refused.
//
// Calling thread: the control thread. Calls of the data plane are made from here.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <tuple>
#include <vector>

#include "common/status.h"
#include "daemon/plane/data_plane.h"
#include "daemon/session/session.h"
#include "proto/attach_protocol.h"
#include "proto/control.pb.h"

namespace ferry::daemon {

class PairBook {
 public:
  // Hands news on to another node of the job; OnTold follows once it has been taken.
  using Tell = std::function<void(uint32_t node, const control::PairNews& news)>;

  // `plan` and the data plane outlive it, and the number of the last pair of any job.
  PairBook(const JobPlan& plan, DataPlane& data_plane, uint64_t& last_pair, Tell tell);

  // A rank here offers requests. All are taken or, with an error, none: kInvalidArgument,
  // kInvalidRank, kInvalidBuffer (a place is not in its memory), kAlreadyExists (a key),
  // kLimitExceeded (more than it has requests, or it has taken back as many before the other sides
  // could hear of them).
  Status Offer(const std::shared_ptr<Session>& session, bool sends,
               std::span<const attach::PairOffer> offers);
  // Lists the windows in device memory that these offers have for ranks of other nodes. The NIC has
  // to have them before they are offered (DataPlane::ReachWindows).
  std::vector<NicWindow> NicWindows(const Session& session, bool sends,
                                    std::span<const attach::PairOffer> offers) const;
  // A rank here takes one back; its end is not touched any more. Unknown ones are ignored.
  // Messages that were complete at its end still become so at the other.
  void Withdraw(const Session& session, const attach::WithdrawRequest& request);

  // Acts on another node's news. kInvalidArgument: they make no sense; kLimitExceeded: one of its
  // ranks has offered too much that no rank here wanted.
  Status OnNews(uint32_t node, const control::PairNews& news);
  // The node has taken the news (ok), or never will.
  void OnTold(uint32_t node, const control::PairNews& news, const Status& status);
  // A rank of any node is gone: its pairs end with `error`.
  void OnRankEnded(uint32_t rank, ErrorCode error);
  void FailAll(ErrorCode error);

  size_t size() const { return matches_.size(); }

  // An end of a matched pair, of a rank here; its memory stays for as long as `end` does.
  struct EndView {
    RegionPlace end;
    RegionPlace other;  // without a region: that end is on another node
    uint32_t peer = 0;
    int32_t tag = 0;
    bool is_send = false;
    shm::SendMode mode = shm::SendMode::kStandard;  // of the pair's send

    const shm::PairLayout& layout() const {
      return *reinterpret_cast<const shm::PairLayout*>(end.address());
    }
  };
  std::vector<EndView> EndsOf(uint32_t rank) const;

 private:
  using Key = std::tuple<uint32_t, uint32_t, uint32_t, int32_t, uint64_t>;
  // One side. Without a session it is on another node.
  struct Half {
    std::shared_ptr<Session> session;
    RegionPlace end;
    RegionPlace window;
    RegionPlace cells;
    uint32_t cell_count = 0;
    uint64_t size_bytes = 0;
    shm::SendMode mode = shm::SendMode::kStandard;
    uint64_t number = 0;  // its daemon's number for it, between nodes
    bool in_data_plane = false;
    bool matched = false;

    bool is_here() const { return session != nullptr; }
    shm::PairLayout* layout() const { return reinterpret_cast<shm::PairLayout*>(end.address()); }
  };
  struct Match {
    control::PairKey key;
    std::optional<Half> send;
    std::optional<Half> receive;
    ErrorCode ended = ErrorCode::kOk;  // why the side that comes, or remains, has no partner
    bool send_gone = false;            // it will not come, or not again
    bool receive_gone = false;
    bool send_left = false;  // here, and counts in `left_`
    bool receive_left = false;
    bool foreign = false;  // another node spoke of it first: counts in `foreign_`

    std::optional<Half>& half(bool is_send) { return is_send ? send : receive; }
    const std::optional<Half>& half(bool is_send) const { return is_send ? send : receive; }
    bool& gone(bool is_send) { return is_send ? send_gone : receive_gone; }
    bool gone(bool is_send) const { return is_send ? send_gone : receive_gone; }
    bool& left(bool is_send) { return is_send ? send_left : receive_left; }
    uint32_t rank(bool is_send) const { return is_send ? key.source() : key.destination(); }
  };

  static Key KeyOf(const control::PairKey& key);
  bool IsLocal(uint32_t rank) const { return plan_.node_of_rank[rank] == plan_.node; }
  Status Check(const Session& session, const attach::PairOffer& offer, bool is_send,
               Half* half) const;
  void TryPair(Match& match);
  Status Install(Match& match, bool is_send);
  void EndBoth(Match& match, ErrorCode error);
  static void Publish(const Half& half, shm::PairState state, ErrorCode error);
  static void MarkMatched(Match& match, bool is_send);
  struct Ending {
    ErrorCode error;
    uint64_t rounds;  // that still become complete
  };
  void EndHalf(const Match& match, bool is_send, const Ending& ending);
  void Drop(std::optional<Half>& half);
  void Leave(Match& match, bool is_send, const Ending& ending);
  void TellEnd(const Match& match, bool to_send, const Ending& ending);
  void EraseIfOver(const control::PairKey& key);
  void Erase(std::map<Key, Match>::iterator found);
  uint32_t RankHere(const Key& key) const;
  void ForgetUntoldOf(uint32_t rank);

  const JobPlan& plan_;
  DataPlane& data_plane_;
  uint64_t& last_pair_;
  const Tell tell_;
  std::map<Key, Match> matches_;
  // By rank: the halves that a rank here has in the book; those that it has taken back and other
  // nodes have to hear of; those of a rank elsewhere, of which its daemon has told.
  std::map<uint32_t, uint32_t> offered_;
  std::map<uint32_t, uint32_t> left_;
  std::map<uint32_t, uint32_t> foreign_;
  std::multiset<Key> untold_;  // the part of `left_` that the other node is still to be told
  std::map<uint32_t, ErrorCode> ended_ranks_;
};

}  // namespace ferry::daemon
