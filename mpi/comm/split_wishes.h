// Which processes come together when a communicator is split (MPI 5.0, chapter 7.4.2,
// MPI_Comm_split): the color and the key of one member after the other, as the patterns that they
// follow. A split into rows, columns, nodes, or copies of the whole takes some tens of bytes for any
// number of members, on the way as in memory; a thousand random colors take about 4 B a member.
//
// Any thread; nothing blocks but GatherWishes, which all members of a team call.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/number_sequence.h"
#include "mpi/base/failure.h"
#include "mpi/comm/agree.h"

namespace ferry::mpi {

class SplitWishes {
 public:
  // The color MPI_UNDEFINED: the member is to be in no part.
  void Add(int color, int key);
  void Append(const SplitWishes& more);

  size_t size() const { return colors_.size(); }
  std::string Packed() const;
  // Takes what Packed wrote in place of what is there. MPI_ERR_INTERN: it is no such text.
  Failure Unpack(std::string_view text);

  // MPI_ERR_ARG if a color is negative, but not MPI_UNDEFINED.
  Failure CheckColors() const;
  // The colors that are wished for, in ascending order, each once.
  std::vector<int> Colors() const;
  // The members, as ranks of the communicator that is split, of the part of `color`: in order of
  // their keys, and of their ranks where keys are the same.
  std::vector<int> MembersOf(int color) const;

 private:
  NumberSequence colors_;
  NumberSequence keys_;
};

// Tells each member of the team the wishes of all, by a binomial tree. No message is longer than
// the patterns of the members below.
Failure GatherWishes(const Team& team, int color, int key, SplitWishes* wishes);

// The place of `color`, which is there, among colors in ascending order.
int IndexOfColor(const std::vector<int>& colors, int color);

}  // namespace ferry::mpi
