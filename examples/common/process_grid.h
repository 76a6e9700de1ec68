// Divides points among ranks.
#pragma once

#include <array>
#include <optional>
#include <string>

namespace examples {

// Axis 0 is the one along which points lie next to each other in memory.
using Triple = std::array<int, 3>;

// A range of interior points: [first, first + count). Point 0 is the fixed edge.
struct Range {
  int first = 1;
  int count = 0;
};

// The index-th of `parts` ranges that cover the interior of `points` points (all but the first and
// the last) and differ by at most one point.
Range RangeOf(int points, int parts, int index);

// Ranks in a box, rank 0 in its corner, axis 0 fastest.
class ProcessGrid {
 public:
  explicit ProcessGrid(const Triple& counts) : counts_(counts) {}
  // The grid of that many ranks whose largest part exchanges the fewest points. None if every grid
  // leaves a rank without an interior point.
  static std::optional<ProcessGrid> Choose(int ranks, const Triple& points);

  const Triple& counts() const { return counts_; }
  int ranks() const { return counts_[0] * counts_[1] * counts_[2]; }
  Triple PlaceOf(int rank) const;
  // The rank one step along `axis`, towards lower (-1) or higher (+1) points; -1 beyond the edge.
  int Neighbour(int rank, int axis, int step) const;
  // Returns true if each rank gets a point.
  bool Fits(const Triple& points) const;

 private:
  // Returns how many points the largest part sends in an iteration.
  long FacePoints(const Triple& points) const;

  Triple counts_;
};

// "66 x 66 x 66"; only the first `axes` of them.
std::string TimesText(const Triple& numbers, int axes);

}  // namespace examples
