// halo/block.h - which rank owns which cells of a grid: the geometry behind ferry/halo.h. Pure: it
// calls nothing of Ferry.
#pragma once

#include <array>
#include <cstddef>
#include <stdexcept>
#include <string>
#include <vector>

#include "ferry/ferry.h"

namespace ferry {

// One rank's block of a grid that all ranks of the job divide among themselves in a box of ranks.
//
// In memory it has `ghost` more cells at both ends of each axis that is in use; axis 0 is the one
// along which cells lie next to each other. Rank 0 is in the corner of the box, axis 0 counts
// fastest. All ranks give the same values, but for `cells`: ranks may differ along an axis as long
// as neighbours across another axis agree.
struct HaloBlock {
  int dimensions = 3;                 // 1 to 3
  std::array<int, 3> cells{1, 1, 1};  // of this rank, without ghosts; 1 beyond `dimensions`
  int ghost = 1;                      // width of the halo, in cells: at most the fewest of `cells`
  size_t element_bytes = 8;           // of a cell
  std::array<int, 3> ranks{1, 1, 1};  // of the box; 1 beyond `dimensions`
  std::array<bool, 3> periodic{};     // whether the first and the last along it are neighbours
  // Which neighbours: those one step away along one axis, along all axes (where there are more
  // than one), and, in three dimensions, along two.
  bool faces = true;
  bool edges = true;
  bool corners = true;
  int tag = 1 << 20;  // the halo's messages have tags from this one to 27 above
};

namespace halo {

using Triple = std::array<int, 3>;

// Cells of a block as it lies in memory, ghosts counted.
struct Box {
  Triple first{};
  Triple count{};

  size_t cells() const {
    return static_cast<size_t>(count[0]) * static_cast<size_t>(count[1]) *
           static_cast<size_t>(count[2]);
  }
};

// A rank that lies `step` away, and the cells that it shares with this rank.
struct Neighbour {
  int rank = 0;
  Triple step{};
  Box owned;  // this rank's cells, of which the neighbour has ghosts
  Box ghost;  // this rank's ghosts of the neighbour's cells: as many
};

// Numbers a step from 0 to 26. The opposite step of step n has the number 26 - n.
inline int NumberOf(const Triple& step) {
  return (step[0] + 1) + 3 * (step[1] + 1) + 9 * (step[2] + 1);
}
inline Triple Opposite(const Triple& step) { return {-step[0], -step[1], -step[2]}; }

// The numbers of cells of the block in memory along each axis, ghosts counted.
inline Triple ExtentOf(const HaloBlock& block) {
  Triple extent{1, 1, 1};
  for (size_t axis = 0; axis < static_cast<size_t>(block.dimensions); ++axis) {
    extent[axis] = block.cells[axis] + 2 * block.ghost;
  }
  return extent;
}

[[noreturn]] inline void Refuse(const std::string& what) {
  throw std::invalid_argument("halo: " + what);
}

// Throws std::invalid_argument if no job of `size` ranks can have such blocks.
inline void CheckBlock(const HaloBlock& block, int size) {
  if (block.dimensions < 1 || block.dimensions > 3) {
    Refuse("dimensions is " + std::to_string(block.dimensions) + ", not 1, 2 or 3");
  }
  if (block.ghost < 1) {
    Refuse("ghost is " + std::to_string(block.ghost) + ": a halo is at least 1 cell wide");
  }
  if (block.element_bytes == 0) {
    Refuse("element_bytes is 0");
  }
  constexpr int kLastTag = FERRY_TAG_MAX - 27;
  if (block.tag < 0 || block.tag > kLastTag) {
    Refuse("tag is " + std::to_string(block.tag) + ", not from 0 to " + std::to_string(kLastTag));
  }
  if (!block.faces && !block.edges && !block.corners) {
    Refuse("neither faces nor edges nor corners are wanted");
  }
  long ranks = 1;
  for (size_t axis = 0; axis < 3; ++axis) {
    const std::string at = "[" + std::to_string(axis) + "] is ";
    const int cells = block.cells[axis];
    if (block.ranks[axis] < 1) {
      Refuse("ranks" + at + std::to_string(block.ranks[axis]) + ", not at least 1");
    }
    ranks *= block.ranks[axis];
    if (axis >= static_cast<size_t>(block.dimensions)) {
      if (cells != 1 || block.ranks[axis] != 1 || block.periodic[axis]) {
        Refuse("axis " + std::to_string(axis) +
               " is used (cells, ranks or periodic), but dimensions is " +
               std::to_string(block.dimensions));
      }
    } else if (cells < block.ghost) {
      Refuse("cells" + at + std::to_string(cells) + ", but neighbours have ghosts of " +
             std::to_string(block.ghost) + " of them: divide the axis among fewer ranks");
    }
  }
  if (ranks != size) {
    Refuse("ranks is a box of " + std::to_string(ranks) + ", but the job has " +
           std::to_string(size) + " ranks");
  }
}

// The place of a rank in the box.
inline Triple PlaceOf(const HaloBlock& block, int rank) {
  return {rank % block.ranks[0], rank / block.ranks[0] % block.ranks[1],
          rank / (block.ranks[0] * block.ranks[1])};
}

// The rank one step away; -1 beyond the end of an axis that is not periodic.
inline int RankAt(const HaloBlock& block, int rank, const Triple& step) {
  Triple place = PlaceOf(block, rank);
  for (size_t axis = 0; axis < 3; ++axis) {
    const int ranks = block.ranks[axis];
    place[axis] += step[axis];
    if (!block.periodic[axis] && (place[axis] < 0 || place[axis] >= ranks)) {
      return -1;
    }
    place[axis] = (place[axis] + ranks) % ranks;
  }
  return place[0] + block.ranks[0] * (place[1] + block.ranks[1] * place[2]);
}

// Returns true if the halo includes the neighbour at that step.
inline bool IsWanted(const HaloBlock& block, const Triple& step) {
  int axes = 0;
  for (size_t axis = 0; axis < 3; ++axis) {
    if (step[axis] != 0 && axis >= static_cast<size_t>(block.dimensions)) {
      return false;
    }
    axes += step[axis] != 0 ? 1 : 0;
  }
  return axes == 0                  ? false
         : axes == 1                ? block.faces
         : axes == block.dimensions ? block.corners
                                    : block.edges;
}

// Describes the neighbour at `step`, which is `rank`, and the cells that are shared with it.
inline Neighbour NeighbourAt(const HaloBlock& block, int rank, const Triple& step) {
  Neighbour found{rank, step, {}, {{0, 0, 0}, {1, 1, 1}}};
  found.owned = found.ghost;
  for (size_t axis = 0; axis < static_cast<size_t>(block.dimensions); ++axis) {
    const int cells = block.cells[axis];
    const int way = step[axis];
    found.owned.count[axis] = found.ghost.count[axis] = way == 0 ? cells : block.ghost;
    found.owned.first[axis] = way > 0 ? cells : block.ghost;
    found.ghost.first[axis] = way < 0 ? 0 : way > 0 ? cells + block.ghost : block.ghost;
  }
  return found;
}

// All neighbours of a rank. Those that are the rank itself come last (periodic axes of few ranks).
inline std::vector<Neighbour> NeighboursOf(const HaloBlock& block, int rank) {
  std::vector<Neighbour> others;
  std::vector<Neighbour> itself;
  for (int number = 0; number < 27; ++number) {
    const Triple step{number % 3 - 1, number / 3 % 3 - 1, number / 9 - 1};
    const int at = IsWanted(block, step) ? RankAt(block, rank, step) : -1;
    if (at >= 0) {
      (at == rank ? itself : others).push_back(NeighbourAt(block, at, step));
    }
  }
  others.insert(others.end(), itself.begin(), itself.end());
  return others;
}

}  // namespace halo
}  // namespace ferry
