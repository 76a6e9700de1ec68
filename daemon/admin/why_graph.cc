#include "daemon/admin/why_graph.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "daemon/admin/why_edges.h"
#include "daemon/admin/why_kernels.h"
#include "daemon/admin/why_steps.h"

namespace ferry::daemon {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kBetweenLooks(50);
constexpr int kMostLooks = 6;
constexpr uint32_t kMostQuestions = 64;  // for one answer: all ranks of a job may be asked for
constexpr milliseconds kMostTime(1500);
constexpr size_t kMostFollowed = 4096;  // ranks of one chain's search
constexpr size_t kMostPairs = 1024;     // looked at again

constexpr char kWaits[] = "waits";
constexpr char kElsewhere[] = "elsewhere";

// How much the end of a chain explains.
int Weight(const std::string& state) {
  using Kind = Condition::Kind;
  static constexpr std::pair<Kind, int> kWeights[] = {
      {Kind::kDied, 50},      {Kind::kLeft, 50},   {Kind::kUnreachable, 50},
      {Kind::kStopped, 40},   {Kind::kAbsent, 40}, {Kind::kComputes, 20},
      {Kind::kElsewhere, 20}, {Kind::kWaits, 10},  {Kind::kJoins, 10},
  };
  for (const auto& [kind, weight] : kWeights) {
    if (state == ConditionText(kind)) {
      return weight;
    }
  }
  return 0;
}
constexpr int kGoneWeight = 40;  // and more: whatever its program would do
constexpr int kCircleWeight = 30;
// The weights of a chain of several ranks whose last one waits, too: for no rank in particular, and
// for others.
constexpr int kWaitsForNobodyWeight = 15;
constexpr int kWaitsWeight = 12;

}  // namespace

// Follows all ranks that a rank waits for, depth first, and keeps the chain whose end explains
// most. A rank that waits for several may need all or one of them: Ferry cannot know.
class ChainFinder {
 public:
  ChainFinder(WaitGraph* graph, std::string job_id, bool with_circles)
      : graph_(*graph), job_id_(std::move(job_id)), with_circles_(with_circles) {}

  WaitGraph::Chain Find(uint32_t rank) {
    Follow(rank);
    best_.has_no_ahead = !has_met_ahead_;
    return best_;
  }

 private:
  void Keep(int weight, bool circle) {
    if (weight > best_.weight) {
      best_ = {path_, circle, weight};
    }
  }

  // A rank that has come to the same call as the first one is not to blame.
  int WeightOf(const control::RankWait& look) const {
    if (path_.size() > 1 && HasCome(graph_.Look(job_id_, path_.front()).look, look)) {
      return 0;
    }
    return look.state() != kWaits || path_.size() == 1  ? Weight(look.state())
           : look.edges().empty() || IsForAnybody(look) ? kWaitsForNobodyWeight
                                                        : kWaitsWeight;
  }

  void Follow(uint32_t rank) {
    ++graph_.followed_;
    path_.push_back(rank);
    const control::RankWait& look = graph_.Look(job_id_, rank).look;
    Keep(WeightOf(look), false);
    // Only a rank inside a blocking call waits; what others have begun goes on without them.
    if (visited_.insert(rank).second && look.state() == kWaits && !IsForAnybody(look)) {
      const bool is_for_node = NeedsOf(look) == KernelNeeds::kNode;
      for (const control::WaitEdge& edge : look.edges()) {
        has_met_ahead_ = has_met_ahead_ || IsAhead(look, edge);
        if (is_for_node) {
          MeetNode(edge.peer());
        } else if (visited_.size() < kMostFollowed && edge.peer() != rank &&
                   (with_circles_ || !IsAhead(look, edge))) {
          Meet(edge.peer());
        }
      }
    }
    path_.pop_back();
  }

  // The last rank's kernels need the peer's daemon: what the peer's program does explains nothing.
  void MeetNode(uint32_t peer) {
    const std::string& state = graph_.Look(job_id_, peer).look.state();
    if (Weight(state) >= kGoneWeight || state == kElsewhere) {
      path_.push_back(peer);
      Keep(Weight(state), false);
      path_.pop_back();
    }
  }

  void Meet(uint32_t peer) {
    if (!visited_.contains(peer)) {
      return Follow(peer);
    }
    const auto before = std::find(path_.begin(), path_.end(), peer);
    if (with_circles_ && before != path_.end() &&
        graph_.MayBeStuck({job_id_, {before, path_.end()}})) {
      path_.push_back(peer);
      Keep(kCircleWeight, true);
      path_.pop_back();
    }
  }

  WaitGraph& graph_;
  const std::string job_id_;
  const bool with_circles_;
  std::vector<uint32_t> path_;
  std::set<uint32_t> visited_;  // all of the path, too
  WaitGraph::Chain best_;
  bool has_met_ahead_ = false;
};

WaitGraph::WaitGraph(RankLooker* looker)
    : looker_(*looker), end_(std::chrono::steady_clock::now() + kMostTime) {}

const WaitGraph::Node& WaitGraph::Look(const std::string& job_id, uint32_t rank) {
  const auto [found, is_new] = nodes_.try_emplace({job_id, rank});
  Node& node = found->second;
  if (!is_new) {
    return node;
  }
  const bool is_late = asked_ >= kMostQuestions || std::chrono::steady_clock::now() > end_;
  RankLooker::Answer answer = looker_.Look(job_id, rank, !is_one_silent_ && !is_late);
  asked_ += answer.asked ? 1 : 0;
  node.trouble = std::move(answer.trouble);
  if (!answer.asked && !answer.ranks.empty() && answer.ranks.front().state() == kElsewhere) {
    node.trouble =
        is_one_silent_
            ? Status(ErrorCode::kTimeout, "it was not asked, since another one did not answer")
            : Status(ErrorCode::kLimitExceeded, "too many nodes were asked already");
  }
  is_one_silent_ = is_one_silent_ || (answer.asked && node.trouble.code() == ErrorCode::kTimeout);
  for (control::RankWait& look : answer.ranks) {
    if (look.rank() == rank) {
      node.look = std::move(look);
    } else if (const auto [other, unknown] = nodes_.try_emplace({job_id, look.rank()}); unknown) {
      other->second.look = std::move(look);
    }
  }
  if (node.look.state().empty()) {  // no correct looker answers so
    node.look.set_state(kElsewhere);
    node.look.set_detail("cannot be looked at");
  }
  return node;
}

const control::WaitEdge* WaitGraph::EdgeTo(const control::RankWait& look, uint32_t peer) {
  const auto found =
      std::find_if(look.edges().begin(), look.edges().end(),
                   [&](const control::WaitEdge& edge) { return edge.peer() == peer; });
  return found == look.edges().end() ? nullptr : &*found;
}

// ---- Circles ------------------------------------------------------------------------------------

bool WaitGraph::MayBeStuck(const Circle& circle) {
  const auto& [job_id, ranks] = circle;
  for (size_t i = 0; i < ranks.size(); ++i) {
    const control::RankWait& look = Look(job_id, ranks[i]).look;
    if (look.state() != kWaits || IsAny(look) ||
        !IsStuck(EdgeTo(look, ranks[(i + 1) % ranks.size()]))) {
      return false;
    }
  }
  return true;
}

WaitGraph::Circle WaitGraph::CircleOf(const std::string& job_id, const Chain& chain) {
  const auto first = std::find(chain.ranks.begin(), chain.ranks.end(), chain.ranks.back());
  std::vector<uint32_t> ranks(first, chain.ranks.end() - 1);
  std::rotate(ranks.begin(), std::min_element(ranks.begin(), ranks.end()), ranks.end());
  return {job_id, std::move(ranks)};
}

// `again` has one look at each rank of the circle, in its order.
WaitGraph::Second WaitGraph::Compare(const Circle& circle,
                                     std::span<const control::RankWait> again) {
  const auto& [job_id, ranks] = circle;
  bool sleep = true;
  for (size_t i = 0; i < ranks.size(); ++i) {
    const size_t next = (i + 1) % ranks.size();
    const control::RankWait& look = again[i];
    const control::WaitEdge* const edge = EdgeTo(look, ranks[next]);
    if (look.rank() != ranks[i] || look.state() != kWaits ||
        look.mark() != Look(job_id, ranks[i]).look.mark() || edge == nullptr ||
        !IsCertain(*edge, look, again[next])) {
      return Second::kMoves;
    }
    sleep = sleep && look.asleep();
  }
  return sleep ? Second::kCertain : Second::kAwake;
}

// A rank may be awake for a moment, to look around: then all are looked at once more.
void WaitGraph::Confirm(std::set<Circle> circles) {
  for (int round = 0; round < kMostLooks && !circles.empty(); ++round) {
    looker_.Pause(kBetweenLooks);
    std::map<std::string, std::vector<WaitPairName>> pairs;  // by job
    std::map<std::string, std::vector<Circle>> looked;       // likewise
    size_t count = 0;
    for (const Circle& circle : circles) {
      const auto& [job_id, ranks] = circle;
      if (count + ranks.size() > kMostPairs) {
        continue;
      }
      count += ranks.size();
      looked[job_id].push_back(circle);
      for (size_t i = 0; i < ranks.size(); ++i) {
        pairs[job_id].push_back({ranks[i], ranks[(i + ranks.size() - 1) % ranks.size()]});
      }
    }
    std::set<Circle> awake;
    for (const auto& [job_id, names] : pairs) {
      const std::vector<control::RankWait> again = looker_.LookAgain(job_id, names);
      if (again.size() != names.size()) {
        continue;
      }
      size_t at = 0;
      for (const Circle& circle : looked[job_id]) {
        const Second second = Compare(circle, std::span(again).subspan(at, circle.second.size()));
        at += circle.second.size();
        if (second == Second::kCertain) {
          certain_.insert(circle);
        } else if (second == Second::kAwake) {
          awake.insert(circle);
        }
      }
    }
    circles = std::move(awake);
  }
}

// ---- Knots --------------------------------------------------------------------------------------

bool WaitGraph::HasWaitedThroughout(const control::RankWait& look) const {
  const auto since = std::chrono::steady_clock::now() - (end_ - kMostTime);
  const auto asked_ms = std::chrono::ceil<milliseconds>(since).count();
  const auto is_old = [&](const control::RankCall& call) {
    return call.for_ms() > static_cast<uint64_t>(asked_ms);
  };
  return !look.calls().empty() && std::all_of(look.calls().begin(), look.calls().end(), is_old);
}

bool WaitGraph::IsKept(const control::RankWait& look, Whose whose) {
  const KernelNeeds needs = whose == Whose::kKernels ? NeedsOf(look) : KernelNeeds::kNothing;
  return needs == KernelNeeds::kProgram || needs == KernelNeeds::kAnyRank;
}

bool WaitGraph::IsStuckIn(const std::string& job_id, uint32_t rank, const std::set<uint32_t>& ranks,
                          Whose whose) {
  const auto known = nodes_.find({job_id, rank});
  if (known == nodes_.end()) {
    return true;
  }
  const control::RankWait& look = known->second.look;
  if (look.state() != kWaits || look.edges().empty() ||
      (whose == Whose::kKernels && !HasWaitedThroughout(look))) {
    return false;
  }
  const auto is_in = [&](const control::WaitEdge& edge) {
    return (IsStuck(&edge) || IsKept(look, whose)) && ranks.contains(edge.peer());
  };
  return IsAny(look) ? std::all_of(look.edges().begin(), look.edges().end(), is_in)
                     : std::any_of(look.edges().begin(), look.edges().end(), is_in);
}

void WaitGraph::KeepStuck(const std::string& job_id, std::set<uint32_t>* ranks, Whose whose) {
  while (std::erase_if(*ranks, [&, before = *ranks](uint32_t rank) {
           return !IsStuckIn(job_id, rank, before, whose);
         }) != 0) {
  }
}

// Looks at further ranks only for as long as this one cannot go on by what is known.
std::vector<uint32_t> WaitGraph::FindKnot(const std::string& job_id, uint32_t rank, Whose whose) {
  for (const auto& [knot, is_certain] : knots_) {
    if (whose == Whose::kThreads && knot.first == job_id &&
        std::binary_search(knot.second.begin(), knot.second.end(), rank)) {
      return knot.second;
    }
  }
  std::set<uint32_t> ranks = {rank};
  bool has_any = false;
  for (std::vector<uint32_t> next = {rank}; !next.empty() && ranks.size() < kMostFollowed;) {
    const uint32_t at = next.back();
    next.pop_back();
    const control::RankWait& look = Look(job_id, at).look;
    const bool is_kept = IsKept(look, whose);
    has_any = has_any || (whose == Whose::kThreads && look.state() == kWaits && IsAny(look));
    for (const control::WaitEdge& edge : look.edges()) {
      if (look.state() == kWaits && (IsStuck(&edge) || is_kept) &&
          ranks.insert(edge.peer()).second) {
        next.push_back(edge.peer());
      }
    }
    // At once for the rank itself: of those here it is known what they do.
    if (at == rank || !IsStuckIn(job_id, at, ranks, whose)) {
      std::set<uint32_t> stuck = ranks;
      KeepStuck(job_id, &stuck, whose);
      if (!stuck.contains(rank)) {
        return {};
      }
    }
  }
  KeepStuck(job_id, &ranks, whose);
  const bool is_whole = ranks.contains(rank) && ranks.size() <= kMostPairs;
  // Without one that waits for any of several ranks, or by a kernel, it is a circle like others.
  const bool has_kernel = std::any_of(ranks.begin(), ranks.end(), [&](uint32_t each) {
    const auto known = nodes_.find({job_id, each});
    return known != nodes_.end() && IsKept(known->second.look, whose);
  });
  return (has_any || has_kernel) && is_whole ? std::vector<uint32_t>(ranks.begin(), ranks.end())
                                             : std::vector<uint32_t>();
}

// `again` has a look at each rank of the knot, and at what each has for those that wait for it.
WaitGraph::Second WaitGraph::Compare(const Knot& knot, const Pairs& again) {
  const auto& [job_id, ranks] = knot;
  bool sleep = true;
  for (const uint32_t rank : ranks) {
    const auto found = again.lower_bound({rank, 0});
    if (found == again.end() || found->first.first != rank) {
      return Second::kMoves;
    }
    const control::RankWait& look = found->second;
    const auto is_certain = [&](const control::WaitEdge& edge) {
      const auto peer = again.find({edge.peer(), rank});
      return peer != again.end() && IsCertain(edge, look, peer->second);
    };
    const auto& edges = look.edges();
    const bool is_stuck = IsAny(look) ? std::all_of(edges.begin(), edges.end(), is_certain)
                                      : std::any_of(edges.begin(), edges.end(), is_certain);
    if (look.rank() != rank || look.state() != kWaits || edges.empty() || !is_stuck ||
        look.mark() != Look(job_id, rank).look.mark()) {
      return Second::kMoves;
    }
    sleep = sleep && look.asleep();
  }
  return sleep ? Second::kCertain : Second::kAwake;
}

bool WaitGraph::Confirm(const Knot& knot) {
  const auto& [job_id, ranks] = knot;
  std::vector<WaitPairName> pairs;
  for (const uint32_t rank : ranks) {
    for (const control::WaitEdge& edge : Look(job_id, rank).look.edges()) {
      if (IsStuck(&edge) && std::binary_search(ranks.begin(), ranks.end(), edge.peer())) {
        pairs.push_back({edge.peer(), rank});
      }
    }
    pairs.push_back({rank, rank});  // whether or not another one waits for it
  }
  for (int round = 0; round < kMostLooks && pairs.size() <= kMostPairs; ++round) {
    looker_.Pause(kBetweenLooks);
    std::vector<control::RankWait> looks = looker_.LookAgain(job_id, pairs);
    if (looks.size() != pairs.size()) {
      return false;
    }
    Pairs again;
    for (size_t i = 0; i < pairs.size(); ++i) {
      again[{pairs[i].rank, pairs[i].waiter}] = std::move(looks[i]);
    }
    if (const Second second = Compare(knot, again); second != Second::kAwake) {
      return second == Second::kCertain;
    }
  }
  return false;
}

// From each rank to the first one of the knot that it waits for, until one comes twice.
WaitGraph::Chain WaitGraph::ChainIn(const Knot& knot, uint32_t rank) {
  const auto& [job_id, ranks] = knot;
  Chain chain{{}, true, kCircleWeight, ranks};
  while (std::find(chain.ranks.begin(), chain.ranks.end(), rank) == chain.ranks.end()) {
    chain.ranks.push_back(rank);
    const auto& edges = Look(job_id, rank).look.edges();
    const auto next = std::find_if(edges.begin(), edges.end(), [&](const auto& edge) {
      return IsStuck(&edge) && std::binary_search(ranks.begin(), ranks.end(), edge.peer());
    });
    rank = next->peer();
  }
  chain.ranks.push_back(rank);
  return chain;
}

// ---- Chains -------------------------------------------------------------------------------------

WaitGraph::Chain WaitGraph::Find(const std::string& job_id, uint32_t rank, bool with_circles) {
  return ChainFinder(this, job_id, with_circles).Find(rank);
}

WaitGraph::Chain WaitGraph::FindOnce(const std::string& job_id, uint32_t rank) {
  if (const auto known = found_.find({job_id, rank}); known != found_.end()) {
    return known->second;
  }
  const control::RankWait& look = Look(job_id, rank).look;
  const auto next = GoesOneWay(look) ? found_.find({job_id, look.edges(0).peer()}) : found_.end();
  Chain chain;
  if (next != found_.end()) {
    chain = next->second;
    chain.ranks.insert(chain.ranks.begin(), rank);
  } else {
    chain = Find(job_id, rank, /*with_circles=*/true);
  }
  Remember(job_id, chain);
  return chain;
}

// Notes the chains of those ranks of a chain whose own it tells. One that ends at a rank which
// waits and might go on tells nothing of theirs.
void WaitGraph::Remember(const std::string& job_id, const Chain& chain) {
  const std::vector<uint32_t>& ranks = chain.ranks;
  if (ranks.size() < 2 || chain.weight < kWaitsForNobodyWeight || !chain.has_no_ahead ||
      MeetsOthers(Look(job_id, ranks.front()).look)) {
    return;
  }
  const auto first = std::find(ranks.begin(), ranks.end(), ranks.back());  // of a circle
  const auto goes_one_way = [&](uint32_t rank) { return GoesOneWay(Look(job_id, rank).look); };
  const auto is_known = [&](uint32_t rank) { return found_.contains({job_id, rank}); };
  const auto last = std::prev(ranks.end());
  auto at = std::find_if(ranks.begin(), last, is_known);
  if (at == last && !std::all_of(first, last, goes_one_way)) {
    return;
  }
  while (at != ranks.begin() && goes_one_way(*--at)) {
    Chain& rest = found_[{job_id, *at}];
    rest = {{at, ranks.end()}, chain.circle, chain.weight};
    rest.has_no_ahead = true;
    if (chain.circle && at > first) {  // from there once around
      rest.ranks.insert(rest.ranks.end(), std::next(first), std::next(at));
    }
  }
}

bool WaitGraph::IsCertainly(const Knot& knot) {
  const auto [found, is_new] = knots_.try_emplace(knot, false);
  if (is_new) {
    found->second = Confirm(knot);
  }
  return found->second;
}

void WaitGraph::Tell(const Chain& chain, control::RankWait* wait) {
  const Node& end = Look(wait->job_id(), chain.ranks.back());
  wait->mutable_chain()->Add(chain.ranks.begin(), chain.ranks.end());
  wait->set_deadlock(chain.circle);
  wait->set_leaves_node(!chain.circle && end.look.state() == kElsewhere);
  wait->set_end(end.look.detail());
  wait->set_verdict(Verdict(chain, *wait));
  if (!end.trouble.ok()) {
    wait->add_troubles("the ferryd of " + RankName(chain.ranks.back()) +
                       "'s node was asked what it waits for: " + end.trouble.message());
  }
}

void WaitGraph::Explain(google::protobuf::RepeatedPtrField<control::RankWait>* waits) {
  for (const control::RankWait& wait : *waits) {
    nodes_[{wait.job_id(), wait.rank()}].look = wait;
  }
  std::vector<Chain> chains;
  std::set<Circle> circles;
  for (const control::RankWait& wait : *waits) {
    chains.push_back(FindOnce(wait.job_id(), wait.rank()));
    if (chains.back().circle) {
      circles.insert(CircleOf(wait.job_id(), chains.back()));
    }
  }
  Confirm(circles);
  for (int i = 0; i < waits->size(); ++i) {
    control::RankWait* const wait = waits->Mutable(i);
    Chain& chain = chains[static_cast<size_t>(i)];
    if (chain.circle ? !certain_.contains(CircleOf(wait->job_id(), chain)) : !chain.has_no_ahead) {
      chain = Find(wait->job_id(), wait->rank(), /*with_circles=*/false);
    }
    if (chain.weight < kCircleWeight) {
      const Knot knot{wait->job_id(), FindKnot(wait->job_id(), wait->rank(), Whose::kThreads)};
      if (!knot.second.empty() && IsCertainly(knot)) {
        chain = ChainIn(knot, wait->rank());
      }
    }
    Tell(chain, wait);
    wait->clear_edges();
  }
}

}  // namespace ferry::daemon
