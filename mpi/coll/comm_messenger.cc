#include "mpi/coll/comm_messenger.h"

#include <algorithm>
#include <climits>
#include <numeric>
#include <utility>

#include "mpi/base/connection.h"
#include "mpi/coll/scratch.h"
#include "mpi/comm/rank_set.h"

namespace ferry::mpi {
namespace {

using collective::FrontMessenger;
using collective::kHostMemory;

int LowestOf(const RankSet& group) {
  int lowest = INT_MAX;
  for (int i = 0; i < group.size(); ++i) {
    lowest = std::min(lowest, group.WorldRank(i));
  }
  return lowest;
}

std::vector<int> From(int first, int count) {
  std::vector<int> peers(static_cast<size_t>(count));
  std::iota(peers.begin(), peers.end(), first);
  return peers;
}

}  // namespace

Sides SidesOf(const Comm& inter) {
  const int own = inter.group().size();
  const int remote = inter.peers().size();
  return LowestOf(inter.peers()) < LowestOf(inter.group())
             ? Sides{.own = From(remote, own), .remote = From(0, remote)}
             : Sides{.own = From(0, own), .remote = From(own, remote)};
}

CommMessenger::Peers CommMessenger::PeersOf(const Comm& comm) {
  if (!comm.is_inter()) {
    const RankSet& group = comm.group();
    return {
        NumberList::Of(static_cast<size_t>(group.size()),
                       [&group](size_t rank) { return group.WorldRank(static_cast<int>(rank)); }),
        comm.rank()};
  }
  const std::vector<int> own = comm.group().WorldRanks();
  const Sides sides = SidesOf(comm);
  const std::vector<int> remote = comm.peers().WorldRanks();
  std::vector<int> all(own.size() + remote.size(), -1);
  for (size_t i = 0; i < own.size(); ++i) {
    all[static_cast<size_t>(sides.own[i])] = own[i];
  }
  for (size_t i = 0; i < remote.size(); ++i) {
    all[static_cast<size_t>(sides.remote[i])] = remote[i];
  }
  return {std::move(all), sides.own[static_cast<size_t>(comm.rank())]};
}

CommMessenger::CommMessenger(const Comm& comm) : CommMessenger(comm, PeersOf(comm)) {}

CommMessenger::CommMessenger(const Comm& comm, Peers peers)
    : FrontMessenger(front_end, comm.context(Traffic::kCollective), std::move(peers.world_ranks),
                     peers.self) {}

void* CommMessenger::AllocateScratch(size_t size_bytes, int device) {
  return device != kHostMemory ? TakeDeviceScratch(size_bytes, device)
                               : FrontMessenger::AllocateScratch(size_bytes, device);
}

void CommMessenger::FreeScratch(void* scratch) {
  if (!GiveDeviceScratch(scratch)) {
    FrontMessenger::FreeScratch(scratch);
  }
}

}  // namespace ferry::mpi
