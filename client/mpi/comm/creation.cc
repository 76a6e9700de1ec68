#include "client/mpi/comm/creation.h"

#include <utility>
#include <vector>

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

}  // namespace ferry::mpi
