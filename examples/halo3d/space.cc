#include "examples/halo3d/space.h"

#include <algorithm>
#include <utility>

namespace halo3d {
namespace {

size_t At(int n) { return static_cast<size_t>(n); }

// Calls use(index in padded numbers of its first cell, y, z) for each row of cells.
template <typename Use>
void ForEachRow(const Triple& cells, Use&& use) {
  for (int z = 0; z < cells[2]; ++z) {
    for (int y = 0; y < cells[1]; ++y) {
      use((At(z + 1) * At(cells[1] + 2) + At(y + 1)) * At(cells[0] + 2) + 1, y, z);
    }
  }
}

void Fill(const Triple& first, const Triple& cells, double* field) {
  ForEachRow(cells, [&](size_t row, int y, int z) {
    for (int x = 0; x < cells[0]; ++x) {
      field[row + At(x)] = InitialValue(first[0] + x, first[1] + y, first[2] + z);
    }
  });
}

std::vector<double> WithoutPadding(const Triple& cells, const double* field) {
  std::vector<double> values;
  ForEachRow(cells, [&](size_t row, int, int) {
    values.insert(values.end(), field + row, field + row + cells[0]);
  });
  return values;
}

// Fills the numbers around the space with those of the other end.
void Wrap(const Triple& cells, double* field) {
  const auto index = [&](const Triple& at) {
    return (At(at[2]) * At(cells[1] + 2) + At(at[1])) * At(cells[0] + 2) + At(at[0]);
  };
  for (int z = 0; z < cells[2] + 2; ++z) {
    for (int y = 0; y < cells[1] + 2; ++y) {
      for (int x = 0; x < cells[0] + 2; ++x) {
        const Triple from = {(x + cells[0] - 1) % cells[0] + 1, (y + cells[1] - 1) % cells[1] + 1,
                             (z + cells[2] - 1) % cells[2] + 1};
        field[index({x, y, z})] = field[index(from)];
      }
    }
  }
}

ferry::HaloBlock BlockOf(const Triple& count, const examples::ProcessGrid& grid, bool is_periodic) {
  ferry::HaloBlock block;
  block.cells = count;
  block.element_bytes = sizeof(double);
  block.ranks = grid.counts();
  block.periodic = {is_periodic, is_periodic, is_periodic};
  return block;
}

}  // namespace

size_t PaddedSize(const Triple& cells) {
  return At(cells[0] + 2) * At(cells[1] + 2) * At(cells[2] + 2);
}

double InitialValue(int x, int y, int z) {
  return static_cast<double>((x * 7 + y * 13 + z * 29) % 64) / 8;
}

void Smooth(const Triple& cells, const double* current, double* next) {
  const size_t row_size = At(cells[0] + 2);
  const size_t plane_size = row_size * At(cells[1] + 2);
  const auto three = [](const double* point) { return point[-1] + point[0] + point[1]; };
  ForEachRow(cells, [&](size_t row, int, int) {
    for (size_t i = row; i < row + At(cells[0]); ++i) {
      double sum = 0;
      for (const double* plane :
           {current + i - plane_size, current + i, current + i + plane_size}) {
        sum += three(plane - row_size) + three(plane) + three(plane + row_size);
      }
      next[i] = sum / 27;
    }
  });
}

std::vector<double> SolveSerially(const Triple& cells, int iterations, bool is_periodic) {
  std::vector<double> current(PaddedSize(cells));
  std::vector<double> next(current.size());
  Fill({0, 0, 0}, cells, current.data());
  for (int i = 0; i < iterations; ++i) {
    if (is_periodic) {
      Wrap(cells, current.data());
    }
    Smooth(cells, current.data(), next.data());
    std::swap(current, next);
  }
  return WithoutPadding(cells, current.data());
}

Part PartOf(const Triple& cells, const examples::ProcessGrid& grid, int rank) {
  const Triple place = grid.PlaceOf(rank);
  Part part;
  for (size_t axis = 0; axis < 3; ++axis) {
    const examples::Range range =
        examples::RangeOf(cells[axis] + 2, grid.counts()[axis], place[axis]);
    part.first[axis] = range.first - 1;
    part.count[axis] = range.count;
  }
  return part;
}

std::vector<double> ValuesOf(const std::vector<double>& all, const Triple& cells,
                             const Part& part) {
  std::vector<double> values;
  for (int z = part.first[2]; z < part.first[2] + part.count[2]; ++z) {
    for (int y = part.first[1]; y < part.first[1] + part.count[1]; ++y) {
      const auto row =
          all.begin() + static_cast<long>((At(z) * At(cells[1]) + At(y)) * At(cells[0]));
      values.insert(values.end(), row + part.first[0], row + part.first[0] + part.count[0]);
    }
  }
  return values;
}

Block::Block(const Triple& cells, const examples::ProcessGrid& grid, bool is_periodic,
             ferry::Sends sends, ferry_stream stream)
    : part_(PartOf(cells, grid, ferry_rank())),
      stream_(stream),
      fields_{Field(PaddedSize(part_.count), FERRY_MEMORY_DEVICE),
              Field(PaddedSize(part_.count), FERRY_MEMORY_DEVICE)},
      iterations_{{this, &fields_[0], &fields_[1]}, {this, &fields_[1], &fields_[0]}},
      halo_(BlockOf(part_.count, grid, is_periodic), stream, sends) {
  std::vector<double> initial(fields_[0].size());
  Fill(part_.first, part_.count, initial.data());
  ferry::Check(ferry_memcpy(fields_[0].data(), initial.data(), fields_[0].size_bytes()));
}

void Block::RunIteration(void* argument) {
  const auto& [block, current, next] = *static_cast<const Iteration*>(argument);
  Smooth(block->part_.count, current->data(), next->data());
}

void Block::Enqueue(int iterations) {
  for (int i = 0; i < iterations; ++i, ++done_) {
    halo_.EnqueueGather(fields_[done_ % 2].data());
    ferry::Check(ferry_stream_launch(stream_, RunIteration, &iterations_[done_ % 2]));
  }
}

std::vector<double> Block::Values() const {
  const Field& field = fields_[done_ % 2];
  std::vector<double> all(field.size());
  ferry::Check(ferry_memcpy(all.data(), field.data(), field.size_bytes()));
  return WithoutPadding(part_.count, all.data());
}

}  // namespace halo3d
