#include "client/mpi/comm/creation.h"

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "client/mpi/base/connection.h"
#include "client/mpi/comm/agree.h"
#include "client/mpi/comm/line_to_members.h"
#include "client/mpi/comm/numbers.h"
#include "client/mpi/comm/splitting.h"

namespace ferry::mpi {
namespace {

// The members agree over a line of their own; the first of them makes the number.
Result<Ref<Comm>> AmongMembers(const Comm& parent, const RankSet& group, Traffic use, int tag) {
  LineToMembers line(parent.context(use), group, tag);
  const Team team{&line, group.RankOf(WorldRankOfSelf()), group.size()};
  NumberGrant grant;
  if (team.rank == 0) {
    grant = GrantNumbers(1);
  }
  if (Failure failure = Broadcast(team, &grant, sizeof(grant)); !failure.ok()) {
    return failure;
  }
  if (Failure failure = Check(grant); !failure.ok()) {
    return failure;
  }
  return MakeComm(parent, grant.Number(0), group);
}

}  // namespace

Result<Ref<Comm>> Duplicate(const Comm& parent) {
  return AmongMembers(parent, parent.group(), Traffic::kAgreement, 0);
}

Result<Ref<Comm>> Split(const Comm& parent, int color, int key) {
  LineToMembers line(parent.context(Traffic::kAgreement), parent.group());
  const Team team{&line, parent.rank(), parent.size()};
  const SplitWish wish{color, key};
  std::vector<SplitWish> wishes(parent.size());
  if (Failure failure = GatherToAll(team, &wish, sizeof(wish), wishes.data()); !failure.ok()) {
    return failure;
  }
  if (Failure failure = CheckColors(wishes); !failure.ok()) {
    return failure;
  }
  NumberGrant grant;
  if (team.rank == 0) {
    grant = GrantNumbers(CountColors(wishes));
  }
  if (Failure failure = Broadcast(team, &grant, sizeof(grant)); !failure.ok()) {
    return failure;
  }
  if (Failure failure = Check(grant); !failure.ok()) {
    return failure;
  }
  if (color == MPI_UNDEFINED) {
    return Ref<Comm>();
  }
  return MakeComm(parent, grant.Number(IndexOfColor(wishes, color)),
                  Select(parent.group(), MembersOf(wishes, color)));
}

Result<Ref<Comm>> Create(const Comm& parent, const RankSet& group) {
  if (Failure failure = CheckSubset(group, parent.group()); !failure.ok()) {
    return failure;
  }
  if (!group.Contains(WorldRankOfSelf())) {
    return Ref<Comm>();
  }
  return AmongMembers(parent, group, Traffic::kAgreement, 0);
}

Result<Ref<Comm>> CreateGroup(const Comm& parent, const RankSet& group, int tag, Traffic traffic) {
  if (Failure failure = CheckSubset(group, parent.group()); !failure.ok()) {
    return failure;
  }
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
  // Whether this side's leader makes numbers.
  bool lower() const { return lower_; }

  // Exchanges data between the leaders.
  Failure Trade(const void* mine, void* theirs, size_t size_bytes) {
    return Exchange(&far_, 0, lower_, mine, theirs, size_bytes);
  }
  // The same where sizes differ.
  template <typename T>
  Failure TradeLists(const std::vector<T>& mine, std::vector<T>* theirs) {
    uint64_t size = mine.size();
    uint64_t their_size = 0;
    if (Failure failure = Trade(&size, &their_size, sizeof(size)); !failure.ok()) {
      return failure;
    }
    theirs->resize(their_size);
    for (bool sends : {lower_, !lower_}) {
      Failure failure = sends ? far_.Send(0, mine.data(), size * sizeof(T))
                              : far_.Receive(0, theirs->data(), their_size * sizeof(T));
      if (!failure.ok()) {
        return failure;
      }
    }
    return Failure{};
  }
  // Tells all of both sides the leaders' numbers.
  Failure AgreeOnNumbers(int count, NumberGrant* grant) {
    if (leads()) {
      NumberGrant theirs;
      *grant = lower_ ? GrantNumbers(count) : NumberGrant{};
      if (Failure failure = Trade(grant, &theirs, sizeof(theirs)); !failure.ok()) {
        return failure;
      }
      *grant = lower_ ? *grant : theirs;
    }
    if (Failure failure = Broadcast(team_, grant, sizeof(*grant)); !failure.ok()) {
      return failure;
    }
    return Check(*grant);
  }
  // Tells all of its side a list of the leader's.
  template <typename T>
  Failure Spread(std::vector<T>* list) {
    uint64_t size = list->size();
    if (Failure failure = Broadcast(team_, &size, sizeof(size)); !failure.ok()) {
      return failure;
    }
    list->resize(size);
    return size == 0 ? Failure{} : Broadcast(team_, list->data(), size * sizeof(T));
  }

 private:
  LineToMembers near_;
  LineToMembers far_;
  const Team team_;
  const bool lower_;
};

// A leader of MPI_Intercomm_create tells its side this.
struct Introduction {
  int error_class = MPI_SUCCESS;
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
  if (Failure failure =
          Exchange(&line, bridge.remote_leader, lower, &mine, introduction, sizeof(mine));
      !failure.ok()) {
    return failure;
  }
  introduction->grant = lower ? mine.grant : introduction->grant;
  remote->resize(introduction->remote_size);
  const std::vector<int> members = local.group().WorldRanks();
  for (bool sends : {lower, !lower}) {
    Failure failure =
        sends ? line.Send(bridge.remote_leader, members.data(), members.size() * sizeof(int))
              : line.Receive(bridge.remote_leader, remote->data(), remote->size() * sizeof(int));
    if (!failure.ok()) {
      return failure;
    }
  }
  if (!Intersection(local.group(), RankSet::Of(*remote)).empty()) {
    return Failure{MPI_ERR_COMM, "a process is in both groups"};
  }
  return Check(introduction->grant);
}

std::vector<SplitWish> Joined(std::vector<SplitWish> wishes, const std::vector<SplitWish>& more) {
  wishes.insert(wishes.end(), more.begin(), more.end());
  return wishes;
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
    introduction.error_class = met.error_class;
    introduction.remote_size = static_cast<int>(remote.size());
  }
  LineToMembers line(local.context(Traffic::kAgreement), local.group(), 0, bridge.local_leader);
  int distance = local.rank() - bridge.local_leader;
  const Team team{&line, distance < 0 ? distance + local.size() : distance, local.size()};
  if (Failure failure = Broadcast(team, &introduction, sizeof(introduction)); !failure.ok()) {
    return failure;
  }
  if (!met.ok()) {
    return met;
  }
  if (introduction.error_class != MPI_SUCCESS) {
    return Failure{introduction.error_class, "the local leader, rank " +
                                                 std::to_string(bridge.local_leader) +
                                                 ", could not meet the remote one; it says why"};
  }
  remote.resize(introduction.remote_size);
  if (Failure failure = Broadcast(team, remote.data(), remote.size() * sizeof(int));
      !failure.ok()) {
    return failure;
  }
  return MakeInterComm(local, introduction.grant.Number(0), local.group(),
                       RankSet::Of(std::move(remote)));
}

Result<Ref<Comm>> DuplicateInter(const Comm& inter) {
  Sides sides(inter);
  NumberGrant grant;
  if (Failure failure = sides.AgreeOnNumbers(1, &grant); !failure.ok()) {
    return failure;
  }
  return MakeInterComm(inter, grant.Number(0), inter.group(), inter.peers());
}

Result<Ref<Comm>> SplitInter(const Comm& inter, int color, int key) {
  Sides sides(inter);
  const SplitWish wish{color, key};
  std::vector<SplitWish> near(inter.size());
  std::vector<SplitWish> far;
  if (Failure failure = GatherToAll(sides.team(), &wish, sizeof(wish), near.data());
      !failure.ok()) {
    return failure;
  }
  if (sides.leads()) {
    if (Failure failure = sides.TradeLists(near, &far); !failure.ok()) {
      return failure;
    }
  }
  if (Failure failure = sides.Spread(&far); !failure.ok()) {
    return failure;
  }
  const std::vector<SplitWish> all = Joined(near, far);
  if (Failure failure = CheckColors(all); !failure.ok()) {
    return failure;
  }
  NumberGrant grant;
  if (Failure failure = sides.AgreeOnNumbers(CountColors(all), &grant); !failure.ok()) {
    return failure;
  }
  const std::vector<int> remote = MembersOf(far, color);
  if (color == MPI_UNDEFINED || remote.empty()) {
    return Ref<Comm>();
  }
  return MakeInterComm(inter, grant.Number(IndexOfColor(all, color)),
                       Select(inter.group(), MembersOf(near, color)),
                       Select(inter.peers(), remote));
}

Result<Ref<Comm>> CreateInter(const Comm& inter, const RankSet& group) {
  if (Failure failure = CheckSubset(group, inter.group()); !failure.ok()) {
    return failure;
  }
  Sides sides(inter);
  std::vector<int> remote;
  if (sides.leads()) {
    if (Failure failure = sides.TradeLists(group.WorldRanks(), &remote); !failure.ok()) {
      return failure;
    }
  }
  if (Failure failure = sides.Spread(&remote); !failure.ok()) {
    return failure;
  }
  NumberGrant grant;
  if (Failure failure = sides.AgreeOnNumbers(1, &grant); !failure.ok()) {
    return failure;
  }
  if (remote.empty() || !group.Contains(WorldRankOfSelf())) {
    return Ref<Comm>();
  }
  return MakeInterComm(inter, grant.Number(0), group, RankSet::Of(std::move(remote)));
}

Result<Ref<Comm>> Merge(const Comm& inter, bool high) {
  Sides sides(inter);
  int mine = high ? 1 : 0;
  int theirs = 0;
  if (sides.leads()) {
    if (Failure failure = sides.Trade(&mine, &theirs, sizeof(mine)); !failure.ok()) {
      return failure;
    }
  }
  // If members of a side differ, which they must not, the leader's word counts.
  int said[2] = {mine, theirs};
  if (Failure failure = Broadcast(sides.team(), said, sizeof(said)); !failure.ok()) {
    return failure;
  }
  NumberGrant grant;
  if (Failure failure = sides.AgreeOnNumbers(1, &grant); !failure.ok()) {
    return failure;
  }
  bool first = said[0] == said[1] ? sides.lower() : said[0] == 0;
  return MakeComm(
      inter, grant.Number(0),
      first ? Union(inter.group(), inter.peers()) : Union(inter.peers(), inter.group()));
}

Failure SynchroniseInter(const Comm& inter) {
  Sides sides(inter);
  char nothing = 0;
  char all_there = 0;
  if (Failure failure = Synchronise(sides.team()); !failure.ok()) {
    return failure;
  }
  if (sides.leads()) {
    if (Failure failure = sides.Trade(&nothing, &all_there, sizeof(nothing)); !failure.ok()) {
      return failure;
    }
  }
  return Broadcast(sides.team(), &all_there, sizeof(all_there));
}

// ---- By nearness --------------------------------------------------------------------------------

namespace {

constexpr char kResourceType[] = "mpi_hw_resource_type";
constexpr char kNode[] = "mpi_shared_memory";

int NodeOf(int world_rank) { return front_end->NodeOf(static_cast<uint32_t>(world_rank)); }

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

}  // namespace

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

}  // namespace ferry::mpi
