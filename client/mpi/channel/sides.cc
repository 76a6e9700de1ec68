#include "client/mpi/channel/sides.h"

#include <algorithm>
#include <climits>
#include <numeric>

#include "client/mpi/comm/rank_set.h"

namespace ferry::mpi {
namespace {

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

}  // namespace ferry::mpi
