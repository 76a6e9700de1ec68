#include "mpi/comm/creation.h"

#include <cstdint>
#include <cstring>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "mpi/base/connection.h"
#include "mpi/comm/agree.h"
#include "mpi/comm/line_to_members.h"
#include "mpi/comm/split_wishes.h"

namespace ferry::mpi {

// ---- Numbers ------------------------------------------------------------------------------------

namespace {

ContextIds& OwnNumbers() {
  static ContextIds numbers(WorldRankOfSelf(), static_cast<int>(front_end->size()));
  return numbers;
}

}  // namespace

NumberGrant GrantNumbers(int count) {
  NumberGrant grant;
  grant.step = OwnNumbers().step();
  if (!OwnNumbers().Make(static_cast<uint32_t>(count), &grant.first).ok()) {
    grant.first = 0;
  }
  return grant;
}

Failure Check(const NumberGrant& grant) {
  return grant.first != 0 ? Failure{}
                          : Failure{MPI_ERR_INTERN,
                                    "the process that was to give the new communicator its number "
                                    "has made so many that no numbers are left"};
}

int WorldRankOfSelf() { return static_cast<int>(front_end->rank()); }

Ref<Comm> MakeComm(const Comm& parent, uint32_t number, RankSet group) {
  int rank = group.RankOf(WorldRankOfSelf());
  Ref<Comm> comm = MakeRef<Comm>(number, std::move(group), rank, parent.error_handler());
  comm->SetSession(parent.session());
  return comm;
}

Ref<Comm> MakeInterComm(const Comm& parent, uint32_t number, RankSet group, RankSet remote) {
  int rank = group.RankOf(WorldRankOfSelf());
  Ref<Comm> comm =
      MakeRef<Comm>(number, std::move(group), rank, std::move(remote), parent.error_handler());
  comm->SetSession(parent.session());
  return comm;
}

namespace {

// Rank 0 makes so many numbers, and tells the others. `met` is the failure that this member has met
// before.
Failure AgreeOnNumbers(const Team& team, int count, NumberGrant* grant, Failure met = {}) {
  if (team.rank == 0) {
    *grant = GrantNumbers(count);
  }
  FERRY_RETURN_FAILURE(Broadcast(team, grant, sizeof(*grant), std::move(met)));
  return Check(*grant);
}

// The members agree over a line of their own; the first of them makes the number.
Result<Ref<Comm>> AmongMembers(const Comm& parent, const RankSet& group, Traffic use, int tag) {
  LineToMembers line(parent.context(use), group, tag);
  const Team team{&line, group.RankOf(WorldRankOfSelf()), group.size()};
  NumberGrant grant;
  FERRY_RETURN_FAILURE(AgreeOnNumbers(team, 1, &grant));
  return MakeComm(parent, grant.Number(0), group);
}

}  // namespace

// The numbers come from rank 0, which would wait for no other rank. But programs that find their
// neighbours by messages of one tag (dolfinx) count on a duplicate, or a graph, that ends such a
// round.
Result<Ref<Comm>> Duplicate(const Comm& parent) {
  LineToMembers line(parent.context(Traffic::kAgreement), parent.group());
  const Team team{&line, parent.rank(), parent.size()};
  Failure met = Gather(team, nullptr, 0, nullptr);
  NumberGrant grant;
  FERRY_RETURN_FAILURE(AgreeOnNumbers(team, 1, &grant, std::move(met)));
  return MakeComm(parent, grant.Number(0), parent.group());
}

Result<Ref<Comm>> Split(const Comm& parent, int color, int key) {
  LineToMembers line(parent.context(Traffic::kAgreement), parent.group());
  const Team team{&line, parent.rank(), parent.size()};
  SplitWishes wishes;
  FERRY_RETURN_FAILURE(GatherWishes(team, color, key, &wishes));
  FERRY_RETURN_FAILURE(wishes.CheckColors());
  const std::vector<int> colors = wishes.Colors();
  NumberGrant grant;
  FERRY_RETURN_FAILURE(AgreeOnNumbers(team, static_cast<int>(colors.size()), &grant));
  if (color == MPI_UNDEFINED) {
    return Ref<Comm>();
  }
  return MakeComm(parent, grant.Number(IndexOfColor(colors, color)),
                  Select(parent.group(), wishes.MembersOf(color)));
}

Result<Ref<Comm>> Create(const Comm& parent, const RankSet& group) {
  return CreateGroup(parent, group, 0, Traffic::kAgreement);
}

Result<Ref<Comm>> CreateGroup(const Comm& parent, const RankSet& group, int tag, Traffic traffic) {
  FERRY_RETURN_FAILURE(CheckSubset(group, parent.group()));
  if (!group.Contains(WorldRankOfSelf())) {
    return Ref<Comm>();
  }
  return AmongMembers(parent, group, traffic, tag);
}

Failure SynchroniseAll(const Comm& comm) {
  LineToMembers line(comm.context(Traffic::kAgreement), comm.group());
  return Synchronise(Team{&line, comm.rank(), comm.size()});
}

// ---- Intercommunicators -------------------------------------------------------------------------

namespace {

// One process' view of an intercommunicator: its side, and the other one's leader.
class Sides {
 public:
  explicit Sides(const Comm& inter)
      : near_(inter.context(Traffic::kAgreement), inter.group()),
        far_(inter.context(Traffic::kAgreement), inter.peers()),
        team_{&near_, inter.rank(), inter.size()},
        lower_(inter.group().WorldRank(0) < inter.peers().WorldRank(0)) {}

  const Team& team() const { return team_; }
  bool leads() const { return team_.rank == 0; }
  // Returns true if this side's leader makes the numbers.
  bool lower() const { return lower_; }

  // Exchanges data between the leaders; the other members pass. If either leader has `met` a
  // failure, both return it, and tell their sides by the Broadcast that follows.
  Failure Trade(const void* mine, size_t mine_bytes, void* theirs, size_t their_bytes,
                Failure met = {}) {
    return leads()
               ? Exchange(&far_, 0, lower_, mine, mine_bytes, theirs, their_bytes, std::move(met))
               : std::move(met);
  }
  // Tells all members of this side the list that the other leader has for this one's, `mine`. If
  // either side has `met` a failure, both return it.
  template <typename T>
  Failure ShareLists(const std::vector<T>& mine, std::vector<T>* theirs, Failure met = {}) {
    const uint64_t size = mine.size();
    uint64_t their_size = 0;
    met = Trade(&size, sizeof(size), &their_size, sizeof(their_size), std::move(met));
    FERRY_RETURN_FAILURE(Broadcast(team_, &their_size, sizeof(their_size), std::move(met)));
    theirs->resize(their_size);
    met = Trade(mine.data(), size * sizeof(T), theirs->data(), their_size * sizeof(T));
    return Broadcast(team_, theirs->data(), their_size * sizeof(T), std::move(met));
  }
  // Tells all of both sides the leaders' numbers.
  Failure AgreeOnNumbers(int count, NumberGrant* grant) {
    const NumberGrant mine = leads() && lower_ ? GrantNumbers(count) : NumberGrant{};
    NumberGrant theirs;
    Failure met = Trade(&mine, sizeof(mine), &theirs, sizeof(theirs));
    *grant = lower_ ? mine : theirs;
    FERRY_RETURN_FAILURE(Broadcast(team_, grant, sizeof(*grant), std::move(met)));
    return Check(*grant);
  }

 private:
  LineToMembers near_;
  LineToMembers far_;
  const Team team_;
  const bool lower_;
};

// A leader of MPI_Intercomm_create tells its side this.
struct Introduction {
  int remote_size = 0;
  NumberGrant grant;
};

// The leaders' part: who is on the other side, and which number the new communicator has.
Failure Meet(const Comm& local, const Bridge& bridge, Introduction* introduction,
             std::vector<int>* remote) {
  LineToMembers line(bridge.peer->context(bridge.traffic), bridge.peer->peers(), bridge.tag);
  bool lower = WorldRankOfSelf() < bridge.peer->WorldRank(bridge.remote_leader);
  Introduction mine;
  mine.remote_size = local.size();
  if (lower) {
    mine.grant = GrantNumbers(1);
  }
  FERRY_RETURN_FAILURE(Exchange(&line, bridge.remote_leader, lower, &mine, sizeof(mine),
                                introduction, sizeof(mine)));
  introduction->grant = lower ? mine.grant : introduction->grant;
  remote->resize(introduction->remote_size);
  const std::vector<int> members = local.group().WorldRanks();
  FERRY_RETURN_FAILURE(Exchange(&line, bridge.remote_leader, lower, members.data(),
                                members.size() * sizeof(int), remote->data(),
                                remote->size() * sizeof(int)));
  if (!Intersection(local.group(), RankSet::Of(*remote)).empty()) {
    return Failure{MPI_ERR_COMM, "a process is in both groups"};
  }
  return Check(introduction->grant);
}

}  // namespace

Result<Ref<Comm>> CreateInter(const Comm& local, const Bridge& bridge) {
  Introduction introduction;
  std::vector<int> remote;
  Failure met;
  if (local.rank() == bridge.local_leader) {
    met = bridge.refused;
    if (met.ok()) {
      met = Meet(local, bridge, &introduction, &remote);
    }
  }
  LineToMembers line(local.context(Traffic::kAgreement), local.group(), 0, bridge.local_leader);
  int distance = local.rank() - bridge.local_leader;
  const Team team{&line, distance < 0 ? distance + local.size() : distance, local.size()};
  FERRY_RETURN_FAILURE(Broadcast(team, &introduction, sizeof(introduction), std::move(met)));
  remote.resize(introduction.remote_size);
  FERRY_RETURN_FAILURE(Broadcast(team, remote.data(), remote.size() * sizeof(int)));
  return MakeInterComm(local, introduction.grant.Number(0), local.group(),
                       RankSet::Of(std::move(remote)));
}

Result<Ref<Comm>> DuplicateInter(const Comm& inter) {
  Sides sides(inter);
  NumberGrant grant;
  FERRY_RETURN_FAILURE(sides.AgreeOnNumbers(1, &grant));
  return MakeInterComm(inter, grant.Number(0), inter.group(), inter.peers());
}

Result<Ref<Comm>> SplitInter(const Comm& inter, int color, int key) {
  Sides sides(inter);
  SplitWishes near;
  Failure met = GatherWishes(sides.team(), color, key, &near);
  const std::string packed = near.Packed();
  std::vector<char> theirs;
  FERRY_RETURN_FAILURE(
      sides.ShareLists(std::vector<char>(packed.begin(), packed.end()), &theirs, std::move(met)));
  SplitWishes far;
  FERRY_RETURN_FAILURE(far.Unpack({theirs.data(), theirs.size()}));
  SplitWishes all = near;
  all.Append(far);
  FERRY_RETURN_FAILURE(all.CheckColors());
  const std::vector<int> colors = all.Colors();
  NumberGrant grant;
  FERRY_RETURN_FAILURE(sides.AgreeOnNumbers(static_cast<int>(colors.size()), &grant));
  const std::vector<int> remote = far.MembersOf(color);
  if (color == MPI_UNDEFINED || remote.empty()) {
    return Ref<Comm>();
  }
  return MakeInterComm(inter, grant.Number(IndexOfColor(colors, color)),
                       Select(inter.group(), near.MembersOf(color)), Select(inter.peers(), remote));
}

Result<Ref<Comm>> CreateInter(const Comm& inter, const RankSet& group) {
  FERRY_RETURN_FAILURE(CheckSubset(group, inter.group()));
  Sides sides(inter);
  std::vector<int> remote;
  FERRY_RETURN_FAILURE(sides.ShareLists(group.WorldRanks(), &remote));
  NumberGrant grant;
  FERRY_RETURN_FAILURE(sides.AgreeOnNumbers(1, &grant));
  if (remote.empty() || !group.Contains(WorldRankOfSelf())) {
    return Ref<Comm>();
  }
  return MakeInterComm(inter, grant.Number(0), group, RankSet::Of(std::move(remote)));
}

Result<Ref<Comm>> Merge(const Comm& inter, bool high) {
  Sides sides(inter);
  // If members of a side differ, which they must not, the leader's word counts.
  int said[2] = {high ? 1 : 0, 0};
  Failure met = sides.Trade(&said[0], sizeof(said[0]), &said[1], sizeof(said[1]));
  FERRY_RETURN_FAILURE(Broadcast(sides.team(), said, sizeof(said), std::move(met)));
  NumberGrant grant;
  FERRY_RETURN_FAILURE(sides.AgreeOnNumbers(1, &grant));
  bool first = said[0] == said[1] ? sides.lower() : said[0] == 0;
  return MakeComm(
      inter, grant.Number(0),
      first ? Union(inter.group(), inter.peers()) : Union(inter.peers(), inter.group()));
}

Failure SynchroniseInter(const Comm& inter) {
  Sides sides(inter);
  Failure met = Gather(sides.team(), nullptr, 0, nullptr);
  met = sides.Trade(nullptr, 0, nullptr, 0, std::move(met));
  return Broadcast(sides.team(), nullptr, 0, std::move(met));
}

// ---- By nearness --------------------------------------------------------------------------------

namespace {

constexpr char kResourceType[] = "mpi_hw_resource_type";
constexpr char kNode[] = "mpi_shared_memory";

int NodeOf(int world_rank) { return front_end->NodeOf(static_cast<uint32_t>(world_rank)); }

}  // namespace

bool HasSeveralNodes(const Comm& comm) {
  const int first = NodeOf(comm.group().WorldRank(0));
  for (const RankSet* side : {&comm.group(), &comm.peers()}) {
    for (int rank = 0; rank < side->size(); ++rank) {
      if (NodeOf(side->WorldRank(rank)) != first) {
        return true;
      }
    }
  }
  return false;
}

Result<Ref<Comm>> SplitByType(const Comm& parent, int split_type, int key, Info* info) {
  const std::optional<std::string> resource =
      info == nullptr ? std::nullopt : info->Find(kResourceType);
  bool by_node = false;
  switch (split_type) {
    case MPI_COMM_TYPE_SHARED:
      by_node = true;
      break;
    case MPI_COMM_TYPE_HW_GUIDED:
    case MPI_COMM_TYPE_RESOURCE_GUIDED:
      by_node = resource == kNode;
      break;
    case MPI_COMM_TYPE_HW_UNGUIDED:
      by_node = HasSeveralNodes(parent);
      break;
    case MPI_UNDEFINED:
      break;
    default:
      return Failure{MPI_ERR_ARG, "split_type is " + std::to_string(split_type)};
  }
  // All members take part, whatever they ask for: a member that gets nothing may be among others
  // that do.
  const int color = by_node ? NodeOf(WorldRankOfSelf()) : MPI_UNDEFINED;
  Result<Ref<Comm>> made =
      parent.is_inter() ? SplitInter(parent, color, key) : Split(parent, color, key);
  if (split_type == MPI_COMM_TYPE_HW_UNGUIDED && info != nullptr && made.ok() && made.value()) {
    (void)info->Set(kResourceType, kNode);  // so that the caller can ask for the same again
  }
  return made;
}

// ---- With a topology ----------------------------------------------------------------------------

namespace {

Result<Ref<Comm>> WithTopology(Result<Ref<Comm>> made, Topology topology) {
  if (made.ok() && made.value()) {
    made.value()->SetTopology(std::make_shared<const Topology>(std::move(topology)));
  }
  return made;
}

RankSet First(const RankSet& group, int count) {
  std::vector<int> ranks(count);
  std::iota(ranks.begin(), ranks.end(), 0);
  return Select(group, ranks);
}

}  // namespace

std::vector<int> OrderByNodes(const Comm& parent, const Cartesian& grid) {
  std::vector<int> node_of;
  for (int rank = 0; rank < grid.size(); ++rank) {
    node_of.push_back(front_end->NodeOf(static_cast<uint32_t>(parent.WorldRank(rank))));
  }
  return PlaceByNodes(grid, node_of);
}

Result<Ref<Comm>> CreateCartesian(const Comm& parent, Cartesian grid, bool reorder) {
  const RankSet members = reorder ? Select(parent.group(), OrderByNodes(parent, grid))
                                  : First(parent.group(), grid.size());
  return WithTopology(Create(parent, members), std::move(grid));
}

Result<Ref<Comm>> CreateGraph(const Comm& parent, Graph graph) {
  const RankSet members = First(parent.group(), graph.node_count());
  return WithTopology(Create(parent, members), std::move(graph));
}

Result<Ref<Comm>> CutCartesian(const Comm& parent, const Cartesian& grid,
                               std::span<const int> keep) {
  const Cartesian::Part part = grid.PartOf(parent.rank(), keep);
  return WithTopology(Split(parent, part.color, part.key), grid.Cut(keep));
}

Result<Ref<Comm>> CreateAdjacent(const Comm& parent, Neighbourhood own) {
  return WithTopology(Duplicate(parent), std::move(own));
}

Result<Ref<Comm>> CreateDistributed(const Comm& parent, const std::vector<GraphEdge>& edges,
                                    bool weighted) {
  LineToMembers line(parent.context(Traffic::kAgreement), parent.group());
  std::vector<char> mine(edges.size() * sizeof(GraphEdge));
  if (!mine.empty()) {
    memcpy(mine.data(), edges.data(), mine.size());
  }
  std::vector<char> joined;
  FERRY_RETURN_FAILURE(
      JoinToAll(Team{&line, parent.rank(), parent.size()}, std::move(mine), &joined));
  std::vector<GraphEdge> all(joined.size() / sizeof(GraphEdge));
  if (!all.empty()) {
    memcpy(all.data(), joined.data(), joined.size());
  }
  return WithTopology(Duplicate(parent), NeighbourhoodOf(parent.rank(), all, weighted));
}

}  // namespace ferry::mpi
