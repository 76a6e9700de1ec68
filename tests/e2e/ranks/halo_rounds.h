// Rounds of halo exchanges, of which every cell, owned or ghost, is compared with what a serial
// program has there: for programs with a device of their own for ferry/halo.h.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <deque>
#include <map>
#include <vector>

#include "ferry/halo.h"
#include "tests/e2e/ranks/check.h"

namespace ferry::halo_rounds {

using Triple = std::array<int, 3>;

struct Case {
  int dimensions;
  Triple ranks;
  std::array<bool, 3> periodic;
  bool faces, edges, corners;
  int ghost;
  int components;  // of 4 bytes
};

// The whole grid, as the serial program sees it: nothing here is the library's own geometry. Ranks
// at odd places have a cell more.
class Grid {
 public:
  explicit Grid(const Case& of) : of_(of) {}

  Triple PlaceOf(int rank) const {
    const auto& n = of_.ranks;
    return {rank % n[0], (rank / n[0]) % n[1], rank / n[0] / n[1]};
  }
  int CellsAt(int axis, int place) const {
    return axis < of_.dimensions ? 3 + axis + of_.ghost + place % 2 : 1;
  }
  int FirstAt(int axis, int place) const {
    int first = 0;
    for (int i = 0; i < place; ++i) {
      first += CellsAt(axis, i);
    }
    return first;
  }
  Triple CellsOf(int rank) const {
    const Triple place = PlaceOf(rank);
    return {CellsAt(0, place[0]), CellsAt(1, place[1]), CellsAt(2, place[2])};
  }
  int Ghost(int axis) const { return axis < of_.dimensions ? of_.ghost : 0; }

  enum class Kind { kOwned, kGhost, kNothing };
  struct Seen {
    Kind kind;
    Triple cell;  // of the whole grid
  };
  // The cell at `at` of a rank's block, ghosts counted.
  Seen See(int rank, const Triple& at) const {
    const Triple place = PlaceOf(rank);
    Seen seen{Kind::kOwned, {}};
    int axes = 0;
    for (int axis = 0; axis < 3; ++axis) {
      const auto a = static_cast<size_t>(axis);
      const int whole = FirstAt(axis, of_.ranks[a]);
      const int inside = at[a] - Ghost(axis);
      axes += inside < 0 || inside >= CellsAt(axis, place[a]) ? 1 : 0;
      seen.cell[a] = FirstAt(axis, place[a]) + inside;
      if (seen.cell[a] < 0 || seen.cell[a] >= whole) {
        if (!of_.periodic[a]) {
          return {Kind::kNothing, {}};
        }
        seen.cell[a] = (seen.cell[a] + whole) % whole;
      }
    }
    if (axes == 0) {
      return seen;
    }
    const bool wanted = axes == 1 ? of_.faces : axes == of_.dimensions ? of_.corners : of_.edges;
    seen.kind = wanted ? Kind::kGhost : Kind::kNothing;
    return seen;
  }
  template <typename Use>
  void ForEachCell(int rank, Use&& use) const {
    const Triple cells = CellsOf(rank);
    size_t index = 0;
    for (int z = 0; z < cells[2] + 2 * Ghost(2); ++z) {
      for (int y = 0; y < cells[1] + 2 * Ghost(1); ++y) {
        for (int x = 0; x < cells[0] + 2 * Ghost(0); ++x) {
          use(index++, See(rank, {x, y, z}));
        }
      }
    }
  }

 private:
  const Case of_;
};

inline int32_t ValueOf(const Triple& cell, int round, int component) {
  return ((cell[2] * 100 + cell[1]) * 100 + cell[0]) * 7 + round * 1000 + component;
}
// The value in ghosts before a scatter depends on the rank, since several ranks have ghosts of one
// cell.
inline int32_t GhostOf(int rank, const Triple& cell, int round, int component) {
  return (rank + 1) * 10 + cell[0] + cell[1] * 2 + cell[2] * 3 + round + component;
}
constexpr int32_t kUntouched = -77;

enum class Kind { kGather, kScatter };

// One round, from the stream's point of view: the field is filled, exchanged, compared; the first
// and the last in host memory, as CPUs may not reach the device's.
struct Round {
  const Grid* grid;
  const std::vector<Grid::Seen>* seen;  // of the field's cells
  const std::vector<std::vector<int>>*
      from;  // of the cells: the ranks whose ghosts are scattered to it
  int components;
  int number;
  Kind kind;
  int32_t* field;  // a copy in host memory
  size_t wrong = 0;
};

inline void FillField(void* argument) {
  const Round& round = *static_cast<Round*>(argument);
  for (size_t i = 0; i < round.seen->size(); ++i) {
    const auto& [kind, cell] = (*round.seen)[i];
    for (int c = 0; c < round.components; ++c) {
      round.field[i * static_cast<size_t>(round.components) + static_cast<size_t>(c)] =
          kind == Grid::Kind::kOwned ? ValueOf(cell, round.number, c)
          : kind == Grid::Kind::kGhost && round.kind == Kind::kScatter
              ? GhostOf(ferry_rank(), cell, round.number, c)
              : kUntouched;
    }
  }
}

inline int32_t Wanted(const Round& round, size_t index, int component) {
  const auto& [kind, cell] = (*round.seen)[index];
  if (kind == Grid::Kind::kNothing) {
    return kUntouched;
  }
  const int32_t value = ValueOf(cell, round.number, component);
  if (round.kind == Kind::kGather) {
    return value;
  }
  if (kind == Grid::Kind::kGhost) {
    return GhostOf(ferry_rank(), cell, round.number, component);
  }
  int32_t sum = value;
  for (const int rank : (*round.from)[index]) {
    sum += GhostOf(rank, cell, round.number, component);
  }
  return sum;
}

inline void CompareField(void* argument) {
  Round& round = *static_cast<Round*>(argument);
  for (size_t i = 0; i < round.seen->size(); ++i) {
    for (int c = 0; c < round.components; ++c) {
      const size_t at = i * static_cast<size_t>(round.components) + static_cast<size_t>(c);
      round.wrong += round.field[at] != Wanted(round, i, c) ? 1 : 0;
    }
  }
}

// The ranks that have a ghost of each of this rank's own cells; a rank counts once for each of its
// ghosts.
inline std::vector<std::vector<int>> GhostsOfOwned(const Grid& grid,
                                                   const std::vector<Grid::Seen>& seen) {
  std::map<Triple, size_t> owned;
  for (size_t i = 0; i < seen.size(); ++i) {
    if (seen[i].kind == Grid::Kind::kOwned) {
      owned.emplace(seen[i].cell, i);
    }
  }
  std::vector<std::vector<int>> from(seen.size());
  for (int rank = 0; rank < ferry_size(); ++rank) {
    grid.ForEachCell(rank, [&](size_t, const Grid::Seen& cell) {
      const auto found = owned.find(cell.cell);
      if (cell.kind == Grid::Kind::kGhost && found != owned.end()) {
        from[found->second].push_back(rank);
      }
    });
  }
  return from;
}

inline HaloBlock BlockOf(const Case& of) {
  ferry::HaloBlock block;
  block.dimensions = of.dimensions;
  block.cells = Grid(of).CellsOf(ferry_rank());
  block.ghost = of.ghost;
  block.element_bytes = static_cast<size_t>(of.components) * sizeof(int32_t);
  block.ranks = of.ranks;
  block.periodic = of.periodic;
  block.faces = of.faces;
  block.edges = of.edges;
  block.corners = of.corners;
  return block;
}

// Enqueues everything before it waits for anything. make_field(bytes) gives an object whose data()
// is device memory.
template <typename Device, typename MakeField>
void Run(const Case& of, Sends sends, typename Device::Stream stream, MakeField&& make_field) {
  const Grid grid(of);
  std::vector<Grid::Seen> seen;
  grid.ForEachCell(ferry_rank(), [&](size_t, const Grid::Seen& cell) { seen.push_back(cell); });
  const std::vector<std::vector<int>> from = GhostsOfOwned(grid, seen);
  BasicHalo<Device> halo(BlockOf(of), stream, sends);
  const size_t bytes = halo.field_bytes();
  CHECK_EQ(bytes, seen.size() * static_cast<size_t>(of.components) * sizeof(int32_t));
  const auto field = make_field(bytes);
  auto* const cells = reinterpret_cast<int32_t*>(field.data());
  const Buffer<int32_t> host(bytes / sizeof(int32_t), FERRY_MEMORY_PINNED);
  std::deque<Round> rounds;
  for (int number = 0; number < 7; ++number) {
    const Kind kind = number % 3 == 1 ? Kind::kScatter : Kind::kGather;
    rounds.push_back({&grid, &seen, &from, of.components, number, kind, host.data()});
    Check(ferry_stream_launch(stream, FillField, &rounds.back()));
    Device::Copy(stream, cells, host.data(), bytes);
    if (kind == Kind::kScatter) {
      halo.EnqueueScatter(cells);
    } else {
      halo.EnqueueGather(cells);
    }
    Device::Copy(stream, host.data(), cells, bytes);
    Check(ferry_stream_launch(stream, CompareField, &rounds.back()));
  }
  halo.Wait();
  for (const Round& round : rounds) {
    if (round.wrong != 0) {
      std::fprintf(stderr,
                   "rank %d: %d dimensions, ranks %dx%dx%d, periodic %d%d%d, wants %d%d%d, ghost "
                   "%d, sends %d, round %d\n",
                   ferry_rank(), of.dimensions, of.ranks[0], of.ranks[1], of.ranks[2],
                   of.periodic[0], of.periodic[1], of.periodic[2], of.faces, of.edges, of.corners,
                   of.ghost, static_cast<int>(sends), round.number);
    }
    CHECK_EQ(round.wrong, 0);
  }
}

}  // namespace ferry::halo_rounds
