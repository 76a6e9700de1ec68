// The graph of waits: which rank waits for which, followed from node to node, and the end of each
// chain in it: a rank that does not wait, or a circle of ranks of which none can ever go on.
//
// A circle is told only if it is certain. The ranks of a circle are looked at one after the other:
// what was true of each need not have been true of all at once, and a message may be under way
// between two nodes. So all of them are looked at again after 50 ms or more: each must be in the
// same requests and asleep, nothing of any of them may have moved, and for each two neighbours the
// waited-for rank must have sent no message that the waiting one has not taken.
//
// Calling thread: a gRPC handler's; blocks until the daemons have answered that are asked about
// their ranks, 1.5 s at most and then for one answer, and for 50 to 300 ms where there may be a
// circle. The control thread goes on meanwhile.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "common/status.h"
#include "proto/control.pb.h"

namespace ferry::daemon {

// A rank and one that waits for it.
struct WaitPairName {
  uint32_t rank = 0;
  uint32_t waiter = 0;
};

// Looks at ranks of a job, wherever they are; any thread but the control thread. Blocks.
class RankLooker {
 public:
  struct Answer {
    // The rank that was asked about, then others of its node, in no order. Not empty: what this
    // daemon knows of the rank itself if its node's daemon has told nothing, and then `trouble`.
    std::vector<control::RankWait> ranks;
    bool asked = false;  // a daemon of another node
    // Why that daemon has told nothing. kTimeout: it did not answer in time.
    Status trouble;
  };
  virtual ~RankLooker() = default;
  // Asks no other daemon unless it `may_ask`.
  virtual Answer Look(const std::string& job_id, uint32_t rank, bool may_ask) = 0;
  // Looks at just these ranks, and returns them in their order; nothing if any could not be seen.
  virtual std::vector<control::RankWait> LookAgain(const std::string& job_id,
                                                   std::span<const WaitPairName> pairs) = 0;
  virtual void Pause(std::chrono::milliseconds time) = 0;
};

class WaitGraph {
 public:
  explicit WaitGraph(RankLooker* looker);

  // Fills in chain, verdict, end, deadlock and leaves_node of each of `waits`, which are looks at
  // ranks here; any jobs. If a daemon does not answer, that becomes a trouble of the wait whose
  // chain ends there, and the verdict says where to ask.
  void Explain(google::protobuf::RepeatedPtrField<control::RankWait>* waits);

  // Over how many ranks chains were followed, all together: the work that was done.
  uint64_t followed() const { return followed_; }

 private:
  friend class ChainFinder;

  struct Chain {
    std::vector<uint32_t> ranks;
    bool circle = false;  // the last rank stands in it twice
    int weight = 0;
    std::vector<uint32_t> knot = {};  // the knot that the circle is in, if one of it waits for any
    bool has_no_ahead = false;        // no edge of its search was one of a deadlock, or of none
  };
  // A rank, as far as it is known.
  struct Node {
    control::RankWait look;
    Status trouble;
  };
  using Name = std::pair<std::string, uint32_t>;  // job, rank
  // The ranks of a circle, each once, the smallest first: each waits for the next one.
  using Circle = std::pair<std::string, std::vector<uint32_t>>;
  // Ranks of which none can go on, sorted: one that waits for any of several ranks waits for ranks
  // of the knot alone, and each other one for one of them (Chandy, Misra and Haas, "Distributed
  // Deadlock Detection", 1983: the communication model).
  using Knot = std::pair<std::string, std::vector<uint32_t>>;

  const Node& Look(const std::string& job_id, uint32_t rank);
  // Returns the edge to the peer, or null.
  static const control::WaitEdge* EdgeTo(const control::RankWait& look, uint32_t peer);
  // Returns true if, as far as one look at each can tell, the circle never ends.
  bool MayBeStuck(const Circle& circle);
  static Circle CircleOf(const std::string& job_id, const Chain& chain);
  // Looks at all ranks of those circles again, and notes which of the circles are certain.
  void Confirm(std::set<Circle> circles);
  enum class Second { kCertain, kMoves, kAwake };
  Second Compare(const Circle& circle, std::span<const control::RankWait> again);
  // Which waits count: those of the ranks' threads, or those of their kernels as well.
  enum class Whose { kThreads, kKernels };
  // The knot that the rank is in, as far as one look at each can tell; empty: none. With kKernels:
  // ranks, some with kernels that wait, that all waited for each other when the answer was begun.
  std::vector<uint32_t> FindKnot(const std::string& job_id, uint32_t rank, Whose whose);
  // Removes the ranks that can go on from `ranks`. Those that were not looked at stay.
  void KeepStuck(const std::string& job_id, std::set<uint32_t>* ranks, Whose whose);
  bool IsStuckIn(const std::string& job_id, uint32_t rank, const std::set<uint32_t>& ranks,
                 Whose whose);
  // Returns true if its waits were there when the answer was begun.
  bool HasWaitedThroughout(const control::RankWait& look) const;
  // Returns true if the rank's edges are those of kernels that programs of other ranks keep
  // waiting.
  static bool IsKept(const control::RankWait& look, Whose whose);
  // Looks at all of them again, once for each knot: returns true if it is certain.
  bool IsCertainly(const Knot& knot);
  bool Confirm(const Knot& knot);
  using Pairs = std::map<std::pair<uint32_t, uint32_t>, control::RankWait>;  // by rank, waiter
  Second Compare(const Knot& knot, const Pairs& again);
  Chain ChainIn(const Knot& knot, uint32_t rank);
  Chain Find(const std::string& job_id, uint32_t rank, bool with_circles);
  // As Find with circles. A thousand ranks in one chain share what was found of it.
  Chain FindOnce(const std::string& job_id, uint32_t rank);
  void Remember(const std::string& job_id, const Chain& chain);
  void Tell(const Chain& chain, control::RankWait* wait);
  std::string CallsText(const Chain& chain, const std::string& job_id);
  std::string KernelsText(const Chain& chain, const std::string& job_id);
  std::string ChainText(const Chain& chain, const std::string& job_id);
  // Returns true if a rank of the chain waits for another one to come to a call.
  bool IsOfCalls(const Chain& chain, const std::string& job_id);
  std::string Verdict(const Chain& chain, const control::RankWait& wait);

  RankLooker& looker_;
  const std::chrono::steady_clock::time_point end_;
  uint32_t asked_ = 0;
  bool is_one_silent_ = false;
  uint64_t followed_ = 0;
  std::map<Name, Node> nodes_;
  std::map<Name, Chain> found_;  // of ranks from which only one way leads on
  std::set<Circle> certain_;
  std::map<Knot, bool> knots_;  // whether it is certain
};

}  // namespace ferry::daemon
