// Who comes together when a communicator is split. MPI 5.0, section 7.4.2 (MPI_Comm_split).
//
// Pure; any thread; does not block.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace ferry::mpi {

// What one member asks for. A color below 0 (MPI_UNDEFINED): to be in no part.
struct SplitWish {
  int color;
  int key;
};

// The members, as ranks of the communicator that is split, of the part of `color`: in order of
// their keys, and of their ranks where keys are the same.
std::vector<int> MembersOf(std::span<const SplitWish> wishes, int color);
// How many colors there are.
int CountColors(std::span<const SplitWish> wishes);
// The place of `color`, which is there, among all colors in ascending order.
int IndexOfColor(std::span<const SplitWish> wishes, int color);

}  // namespace ferry::mpi
