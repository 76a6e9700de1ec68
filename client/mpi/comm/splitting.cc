#include "client/mpi/comm/splitting.h"

#include <algorithm>
#include <string>
#include <utility>

#include "ferry/mpi/mpi.h"

namespace ferry::mpi {
namespace {

std::vector<int> Colors(std::span<const SplitWish> wishes) {
  std::vector<int> colors;
  for (const SplitWish& wish : wishes) {
    if (wish.color >= 0) {
      colors.push_back(wish.color);
    }
  }
  std::sort(colors.begin(), colors.end());
  colors.erase(std::unique(colors.begin(), colors.end()), colors.end());
  return colors;
}

}  // namespace

Failure CheckColors(std::span<const SplitWish> wishes) {
  for (size_t rank = 0; rank < wishes.size(); ++rank) {
    if (int color = wishes[rank].color; color < 0 && color != MPI_UNDEFINED) {
      return Failure{MPI_ERR_ARG, "color of rank " + std::to_string(rank) + " is " +
                                      std::to_string(color) +
                                      "; it must be MPI_UNDEFINED or not negative"};
    }
  }
  return Failure{};
}

std::vector<int> MembersOf(std::span<const SplitWish> wishes, int color) {
  std::vector<int> members;
  for (size_t rank = 0; rank < wishes.size(); ++rank) {
    if (wishes[rank].color == color) {
      members.push_back(static_cast<int>(rank));
    }
  }
  std::stable_sort(members.begin(), members.end(),
                   [&](int a, int b) { return wishes[a].key < wishes[b].key; });
  return members;
}

int CountColors(std::span<const SplitWish> wishes) {
  return static_cast<int>(Colors(wishes).size());
}

int IndexOfColor(std::span<const SplitWish> wishes, int color) {
  std::vector<int> colors = Colors(wishes);
  return static_cast<int>(std::lower_bound(colors.begin(), colors.end(), color) - colors.begin());
}

RankSet Select(const RankSet& group, const std::vector<int>& ranks) {
  std::vector<int> members;
  members.reserve(ranks.size());
  for (int rank : ranks) {
    members.push_back(group.WorldRank(rank));
  }
  return RankSet::Of(std::move(members));
}

Failure CheckSubset(const RankSet& group, const RankSet& whole) {
  for (int rank = 0; rank < group.size(); ++rank) {
    if (!whole.Contains(group.WorldRank(rank))) {
      return Failure{MPI_ERR_GROUP, "rank " + std::to_string(rank) +
                                        " of the group is no process of the communicator"};
    }
  }
  return Failure{};
}

}  // namespace ferry::mpi
