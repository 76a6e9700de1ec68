// Which processes come together when a communicator is split. MPI 5.0, section 7.4.2
// (MPI_Comm_split).
//
// Pure; any thread; does not block.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "client/mpi/base/failure.h"
#include "client/mpi/comm/rank_set.h"

namespace ferry::mpi {

// One member's wish. The color MPI_UNDEFINED: to be in no part.
struct SplitWish {
  int color;
  int key;
};

// MPI_ERR_ARG if a color is negative, but not MPI_UNDEFINED.
Failure CheckColors(std::span<const SplitWish> wishes);
// The members, as ranks of the communicator that is split, of the part of `color`: in order of
// their keys, and of their ranks where keys are the same.
std::vector<int> MembersOf(std::span<const SplitWish> wishes, int color);
// How many colors there are.
int CountColors(std::span<const SplitWish> wishes);
// The place of `color`, which is there, among all colors in ascending order.
int IndexOfColor(std::span<const SplitWish> wishes, int color);

// The members `ranks` of a group.
RankSet Select(const RankSet& group, const std::vector<int>& ranks);
// MPI_ERR_GROUP unless all of `group` is in `whole`.
Failure CheckSubset(const RankSet& group, const RankSet& whole);

}  // namespace ferry::mpi
