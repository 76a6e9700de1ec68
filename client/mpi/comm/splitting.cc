#include "client/mpi/comm/splitting.h"

#include <algorithm>

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

}  // namespace ferry::mpi
