#include "client/mpi/comm/inter_creation.h"

#include <cstdint>
#include <utility>
#include <vector>

#include "client/mpi/comm/agree.h"
#include "client/mpi/comm/line_to_members.h"
#include "client/mpi/comm/numbers.h"
#include "client/mpi/comm/splitting.h"

namespace ferry::mpi {
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

}  // namespace ferry::mpi
