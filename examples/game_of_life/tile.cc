#include "examples/game_of_life/tile.h"

#include <algorithm>
#include <utility>

namespace life {
namespace {

size_t At(int n) { return static_cast<size_t>(n); }

ferry::HaloBlock BlockOf(const Span& columns, const Span& rows, const examples::ProcessGrid& grid,
                         bool is_torus) {
  ferry::HaloBlock block;
  block.dimensions = 2;
  block.cells = {columns.last - columns.first, rows.last - rows.first, 1};
  block.element_bytes = 1;
  block.ranks = grid.counts();
  block.periodic = {is_torus, is_torus, false};
  return block;
}

size_t FieldSize(const Span& columns, const Span& rows) {
  return At(columns.last - columns.first + 2) * At(rows.last - rows.first + 2);
}

// The ring of a board that is alone: the cells of the opposite side.
void WrapRing(int width, int height, uint8_t* field) {
  const auto at = [&](int x, int y) -> uint8_t& { return field[At(y) * At(width + 2) + At(x)]; };
  for (int x = 1; x <= width; ++x) {
    at(x, 0) = at(x, height);
    at(x, height + 1) = at(x, 1);
  }
  for (int y = 0; y <= height + 1; ++y) {
    at(0, y) = at(width, y);
    at(width + 1, y) = at(1, y);
  }
}

}  // namespace

void Step(const Rule& rule, int width, int height, const uint8_t* current, uint8_t* next) {
  const size_t row_size = At(width + 2);
  for (int y = 1; y <= height; ++y) {
    const uint8_t* const middle = current + At(y) * row_size;
    const uint8_t* const above = middle - row_size;
    const uint8_t* const below = middle + row_size;
    uint8_t* const out = next + At(y) * row_size;
    for (size_t x = 1; x <= At(width); ++x) {
      const int around = above[x - 1] + above[x] + above[x + 1] + middle[x - 1] + middle[x + 1] +
                         below[x - 1] + below[x] + below[x + 1];
      out[x] = (middle[x] != 0 ? rule.survives : rule.born)[At(around)] ? 1 : 0;
    }
  }
}

Pattern RunSerially(const Pattern& board, int generations, bool is_torus) {
  const int width = board.width;
  const int height = board.height;
  std::vector<uint8_t> current(At(width + 2) * At(height + 2));
  std::vector<uint8_t> next(current.size());
  const auto row = [&](int y) { return At(y + 1) * At(width + 2) + 1; };
  for (int y = 0; y < height; ++y) {
    std::copy_n(board.cells.data() + At(y) * At(width), width, current.data() + row(y));
  }
  for (int i = 0; i < generations; ++i) {
    if (is_torus) {
      WrapRing(width, height, current.data());
    }
    Step(board.rule, width, height, current.data(), next.data());
    std::swap(current, next);
  }
  Pattern after = board;
  for (int y = 0; y < height; ++y) {
    std::copy_n(current.data() + row(y), width, after.cells.data() + At(y) * At(width));
  }
  return after;
}

Span SpanOf(int cells, int parts, int index) {
  const auto part = [&](int i) { return static_cast<int>(static_cast<long>(cells) * i / parts); };
  return {part(index), part(index + 1)};
}

Tile::Tile(const Pattern& board, const examples::ProcessGrid& grid, bool is_torus,
           ferry::Sends sends, ferry_stream stream)
    : rule_(board.rule),
      columns_(SpanOf(board.width, grid.counts()[0], grid.PlaceOf(ferry_rank())[0])),
      rows_(SpanOf(board.height, grid.counts()[1], grid.PlaceOf(ferry_rank())[1])),
      stream_(stream),
      fields_{Field(FieldSize(columns_, rows_), FERRY_MEMORY_DEVICE),
              Field(FieldSize(columns_, rows_), FERRY_MEMORY_DEVICE)},
      generations_{{this, &fields_[0], &fields_[1]}, {this, &fields_[1], &fields_[0]}},
      halo_(BlockOf(columns_, rows_, grid, is_torus), stream, sends) {
  const int width = columns_.last - columns_.first;
  std::vector<uint8_t> cells(fields_[0].size());
  for (int y = rows_.first; y < rows_.last; ++y) {
    for (int x = columns_.first; x < columns_.last; ++x) {
      cells[At(y - rows_.first + 1) * At(width + 2) + At(x - columns_.first + 1)] = board.At(x, y);
    }
  }
  ferry::Check(ferry_memcpy(fields_[0].data(), cells.data(), cells.size()));
}

void Tile::RunGeneration(void* argument) {
  const auto& [tile, current, next] = *static_cast<const Generation*>(argument);
  Step(tile->rule_, tile->columns_.last - tile->columns_.first,
       tile->rows_.last - tile->rows_.first, current->data(), next->data());
}

void Tile::Enqueue(int generations) {
  for (int i = 0; i < generations; ++i, ++done_) {
    Generation& generation = generations_[done_ % 2];
    halo_.EnqueueGather(fields_[done_ % 2].data());
    ferry::Check(ferry_stream_launch(stream_, RunGeneration, &generation));
  }
}

std::vector<uint8_t> Tile::Cells() const {
  const Field& field = fields_[done_ % 2];
  std::vector<uint8_t> all(field.size());
  ferry::Check(ferry_memcpy(all.data(), field.data(), all.size()));
  const int width = columns_.last - columns_.first;
  std::vector<uint8_t> cells;
  for (int y = 1; y <= rows_.last - rows_.first; ++y) {
    const auto row = all.begin() + static_cast<long>(y) * (width + 2) + 1;
    cells.insert(cells.end(), row, row + width);
  }
  return cells;
}

}  // namespace life
