#include "client/mpi/comm/numbers.h"

#include <utility>

#include "client/mpi/base/connection.h"

namespace ferry::mpi {
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
  return MakeRef<Comm>(number, std::move(group), rank, parent.error_handler());
}

Ref<Comm> MakeInterComm(const Comm& parent, uint32_t number, RankSet group, RankSet remote) {
  int rank = group.RankOf(WorldRankOfSelf());
  return MakeRef<Comm>(number, std::move(group), rank, std::move(remote), parent.error_handler());
}

}  // namespace ferry::mpi
