#include "examples/stencil3d/seven_point.h"

#include <algorithm>

namespace stencil3d {
namespace {

// Calls row(index of its first point) for every row of points of `box`.
template <typename Row>
void ForEachRow(const Triple& extent, const Box& box, const Row& row) {
  for (int z = box.first[2]; z < box.last[2]; ++z) {
    for (int y = box.first[1]; y < box.last[1]; ++y) {
      row(IndexOf(extent, box.first[0], y, z));
    }
  }
}

}  // namespace

bool Box::empty() const {
  return first[0] >= last[0] || first[1] >= last[1] || first[2] >= last[2];
}

size_t Box::points() const {
  size_t points = empty() ? 0 : 1;
  for (size_t axis = 0; points > 0 && axis < 3; ++axis) {
    points *= static_cast<size_t>(last[axis] - first[axis]);
  }
  return points;
}

size_t IndexOf(const Triple& extent, int x, int y, int z) {
  const auto at = [](int n) { return static_cast<size_t>(n); };
  return (at(z) * at(extent[1]) + at(y)) * at(extent[0]) + at(x);
}

void JacobiBox(const double* current, double* next, const Triple& extent, const Box& box) {
  const size_t row_stride = IndexOf(extent, 0, 1, 0);
  const size_t plane_stride = IndexOf(extent, 0, 0, 1);
  const int count = box.last[0] - box.first[0];
  ForEachRow(extent, box, [&](size_t first) {
    const double* middle = current + first;
    double* out = next + first;
    for (int i = 0; i < count; ++i) {
      const double* point = middle + i;
      out[i] = ((point[-1] + point[1]) + (*(point - row_stride) + point[row_stride]) +
                (*(point - plane_stride) + point[plane_stride])) /
               6;
    }
  });
}

Layers LayersOf(const Box& box) {
  Layers layers{{}, box};
  Box& rest = layers.inside;
  for (const size_t axis : {2, 1, 0}) {
    Box low = rest;
    low.last[axis] = rest.first[axis] + 1;
    Box high = rest;
    high.first[axis] = std::max(rest.last[axis] - 1, low.last[axis]);  // empty: low was all
    for (const Box& layer : {low, high}) {
      if (!rest.empty() && !layer.empty()) {
        layers.shell.push_back(layer);
      }
    }
    ++rest.first[axis];
    --rest.last[axis];
  }
  return layers;
}

void Gather(const double* field, const Triple& extent, const Box& box, double* values) {
  const int count = box.last[0] - box.first[0];
  ForEachRow(extent, box,
             [&](size_t first) { values = std::copy_n(field + first, count, values); });
}

void Scatter(const double* values, const Triple& extent, const Box& box, double* field) {
  const int count = box.last[0] - box.first[0];
  ForEachRow(extent, box, [&](size_t first) {
    std::copy_n(values, count, field + first);
    values += count;
  });
}

}  // namespace stencil3d
