#include "examples/stencil3d/block.h"

#include <cmath>
#include <utility>

namespace stencil3d {
namespace {

using examples::RangeOf;

// The ranges of a rank along each axis: their first points, in the whole, and their lengths.
struct Place {
  Triple first;
  Triple count;
};

Place PlaceOf(const Triple& points, const examples::ProcessGrid& grid, int rank) {
  const Triple at = grid.PlaceOf(rank);
  Place place;
  for (size_t axis = 0; axis < 3; ++axis) {
    const examples::Range range = RangeOf(points[axis], grid.counts()[axis], at[axis]);
    place.first[axis] = range.first;
    place.count[axis] = range.count;
  }
  return place;
}

Triple Plus(const Triple& a, int n) { return {a[0] + n, a[1] + n, a[2] + n}; }
Triple Plus(const Triple& a, const Triple& b) { return {a[0] + b[0], a[1] + b[1], a[2] + b[2]}; }

// All points of `extent`; the first of them is `first` of the whole.
void Fill(const Triple& first, const Triple& extent, double* values) {
  for (int z = 0; z < extent[2]; ++z) {
    for (int y = 0; y < extent[1]; ++y) {
      for (int x = 0; x < extent[0]; ++x) {
        *values++ = InitialValue(first[0] + x, first[1] + y, first[2] + z);
      }
    }
  }
}

}  // namespace

double InitialValue(int x, int y, int z) {
  return std::fmod(x * 0.618 + y * 0.7548 + z * 0.8191, 1.0);
}

Block::Block(const Triple& points, const examples::ProcessGrid& grid, int rank,
             examples::Memory memory)
    : own_{{1, 1, 1}, Plus(PlaceOf(points, grid, rank).count, 1)},
      extent_(Plus(own_.last, 1)),
      layers_(LayersOf(own_)),
      current_(Box{{0, 0, 0}, extent_}.points(), memory),
      next_(current_.size(), memory),
      sides_(SidesOf(grid, rank, own_)),
      sent_(PointsOf(sides_), memory),
      received_(sent_.size(), memory) {
  // The edge must be right in both; no step writes it.
  const Triple halo = Plus(PlaceOf(points, grid, rank).first, -1);
  Fill(halo, extent_, current_.data());
  Fill(halo, extent_, next_.data());
  size_t offset = 0;
  for (const Side& side : sides_) {
    faces_.push_back({sent_.data() + offset, received_.data() + offset, side.sent.points(),
                      side.peer, side.send_tag, side.receive_tag});
    offset += side.sent.points();
  }
}

std::vector<Block::Side> Block::SidesOf(const examples::ProcessGrid& grid, int rank,
                                        const Box& own) {
  std::vector<Side> sides;
  for (const int axis : {0, 1, 2}) {
    const auto a = static_cast<size_t>(axis);
    const int downwards = 2 * axis;  // tags say which way a face moves
    const int upwards = downwards + 1;
    if (const int peer = grid.Neighbour(rank, axis, -1); peer >= 0) {
      Side side{peer, downwards, upwards, own, own};
      side.sent.last[a] = own.first[a] + 1;
      side.received.first[a] = own.first[a] - 1;
      side.received.last[a] = own.first[a];
      sides.push_back(side);
    }
    if (const int peer = grid.Neighbour(rank, axis, +1); peer >= 0) {
      Side side{peer, upwards, downwards, own, own};
      side.sent.first[a] = own.last[a] - 1;
      side.received.first[a] = own.last[a];
      side.received.last[a] = own.last[a] + 1;
      sides.push_back(side);
    }
  }
  return sides;
}

size_t Block::PointsOf(const std::vector<Side>& sides) {
  size_t points = 0;
  for (const Side& side : sides) {
    points += side.sent.points();
  }
  return points;
}

const std::vector<examples::Face>& Block::PackFaces() {
  double* values = sent_.data();
  for (const Side& side : sides_) {
    Gather(current_.data(), extent_, side.sent, values);
    values += side.sent.points();
  }
  return faces_;
}

void Block::ComputeInside() { JacobiBox(current_.data(), next_.data(), extent_, layers_.inside); }

void Block::ComputeRest() {
  const double* values = received_.data();
  for (const Side& side : sides_) {
    Scatter(values, extent_, side.received, current_.data());
    values += side.received.points();
  }
  for (const Box& layer : layers_.shell) {
    JacobiBox(current_.data(), next_.data(), extent_, layer);
  }
  std::swap(current_, next_);
}

std::vector<double> Block::Values() const {
  std::vector<double> values(own_.points());
  Gather(current_.data(), extent_, own_, values.data());
  return values;
}

std::unique_ptr<Space> Space::Make(const examples::StencilArguments& arguments, int ranks,
                                   std::string* mistake) {
  const Triple& points = arguments.points;
  const std::string size = examples::TimesText(points, 3);
  if (arguments.grid) {
    const examples::ProcessGrid grid(*arguments.grid);
    const std::string text = "--grid " + examples::TimesText(grid.counts(), 3);
    if (grid.ranks() != ranks) {
      *mistake = text + " has places for " + std::to_string(grid.ranks()) +
                 " ranks, but the job has " + std::to_string(ranks);
    } else if (!grid.Fits(points)) {
      *mistake =
          text + " leaves ranks without an interior point of " + size + ": make --size larger";
    } else {
      return std::unique_ptr<Space>(new Space(points, grid, arguments.memory));
    }
    return nullptr;
  }
  const auto grid = examples::ProcessGrid::Choose(ranks, points);
  if (!grid) {
    *mistake = "no grid of " + std::to_string(ranks) + " ranks fits " + size +
               " points, so that each has an interior point: make --size larger, or run another "
               "number of ranks";
    return nullptr;
  }
  return std::unique_ptr<Space>(new Space(points, *grid, arguments.memory));
}

std::string Space::Describe() const {
  return examples::TimesText(points_, 3) + " points, ranks " +
         examples::TimesText(grid_.counts(), 3);
}

std::unique_ptr<examples::Part> Space::MakePart(int rank) const {
  return std::make_unique<Block>(points_, grid_, rank, memory_);
}

std::vector<double> Space::SolveSerially(int iterations) const {
  const Box interior{{1, 1, 1}, Plus(points_, -1)};
  std::vector<double> current(Box{{0, 0, 0}, points_}.points());
  Fill({0, 0, 0}, points_, current.data());
  std::vector<double> next = current;
  for (int i = 0; i < iterations; ++i) {
    JacobiBox(current.data(), next.data(), points_, interior);
    std::swap(current, next);
  }
  return current;
}

std::vector<double> Space::ValuesOf(const std::vector<double>& all, int rank) const {
  const Place place = PlaceOf(points_, grid_, rank);
  const Box box{place.first, Plus(place.first, place.count)};
  std::vector<double> values(box.points());
  Gather(all.data(), points_, box, values.data());
  return values;
}

double Space::PointsPerIteration() const {
  return static_cast<double>(Box{{1, 1, 1}, Plus(points_, -1)}.points());
}

}  // namespace stencil3d
