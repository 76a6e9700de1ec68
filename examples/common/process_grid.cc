#include "examples/common/process_grid.h"

#include <algorithm>

namespace examples {

Range RangeOf(int points, int parts, int index) {
  const int interior = points - 2;
  const int each = interior / parts;
  const int larger = interior % parts;  // so many parts have one point more
  return {1 + index * each + std::min(index, larger), each + (index < larger ? 1 : 0)};
}

std::optional<ProcessGrid> ProcessGrid::Choose(int ranks, const Triple& points) {
  std::optional<ProcessGrid> best;
  // Among equals the first wins: the one that splits the slow axes, whose faces are cheap to
  // gather.
  for (int x = 1; x <= ranks; ++x) {
    for (int y = 1; ranks % x == 0 && y <= ranks / x; ++y) {
      if (ranks / x % y != 0) {
        continue;
      }
      const ProcessGrid grid({x, y, ranks / x / y});
      if (grid.Fits(points) && (!best || grid.FacePoints(points) < best->FacePoints(points))) {
        best = grid;
      }
    }
  }
  return best;
}

Triple ProcessGrid::PlaceOf(int rank) const {
  return {rank % counts_[0], rank / counts_[0] % counts_[1], rank / counts_[0] / counts_[1]};
}

int ProcessGrid::Neighbour(int rank, int axis, int step) const {
  const auto a = static_cast<size_t>(axis);
  const int place = PlaceOf(rank)[a] + step;
  if (place < 0 || place >= counts_[a]) {
    return -1;
  }
  const Triple stride = {1, counts_[0], counts_[0] * counts_[1]};
  return rank + step * stride[a];
}

bool ProcessGrid::Fits(const Triple& points) const {
  for (size_t axis = 0; axis < 3; ++axis) {
    if (counts_[axis] > points[axis] - 2) {
      return false;
    }
  }
  return true;
}

long ProcessGrid::FacePoints(const Triple& points) const {
  Triple largest;
  for (size_t axis = 0; axis < 3; ++axis) {
    largest[axis] = RangeOf(points[axis], counts_[axis], 0).count;
  }
  long sent = 0;
  for (size_t axis = 0; axis < 3; ++axis) {
    const long face = static_cast<long>(largest[(axis + 1) % 3]) * largest[(axis + 2) % 3];
    sent += std::min(counts_[axis] - 1, 2) * face;
  }
  return sent;
}

std::string TimesText(const Triple& numbers, int axes) {
  std::string text;
  for (int axis = 0; axis < axes; ++axis) {
    text += (axis == 0 ? "" : " x ") + std::to_string(numbers[static_cast<size_t>(axis)]);
  }
  return text;
}

}  // namespace examples
