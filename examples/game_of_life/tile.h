// A rank's part of the board, in device memory, and its generations on a stream.
#pragma once

#include <cstdint>
#include <vector>

#include "examples/common/process_grid.h"
#include "examples/game_of_life/rle.h"
#include "ferry/halo.h"

namespace life {

// Computes one generation of `width` x `height` cells that have a ring of others around them: from
// rows of width + 2 bytes to rows of as many. The contents of `next`'s ring do not matter.
void Step(const Rule& rule, int width, int height, const uint8_t* current, uint8_t* next);

// Runs a board in one process. On a torus its ends meet; else all cells beyond them are dead for
// ever.
Pattern RunSerially(const Pattern& board, int generations, bool is_torus);

// The columns or rows of one of `parts`: from first up to, not including, last.
struct Span {
  int first;
  int last;
};
Span SpanOf(int cells, int parts, int index);

class Tile {
 public:
  // Collective. `grid` has as many ranks as the job, and each gets a cell.
  Tile(const Pattern& board, const examples::ProcessGrid& grid, bool is_torus, ferry::Sends sends,
       ferry_stream stream);

  // Enqueues so many generations; none is done before its neighbours' last one.
  void Enqueue(int generations);
  void Wait() { halo_.Wait(); }
  // The cells, row by row, once Wait has returned.
  std::vector<uint8_t> Cells() const;

 private:
  using Field = ferry::Buffer<uint8_t>;
  // The data that a kernel reads when it runs.
  struct Generation {
    const Tile* tile;
    const Field* current;
    Field* next;
  };
  static void RunGeneration(void* argument);

  const Rule rule_;
  const Span columns_;
  const Span rows_;
  ferry_stream stream_;
  Field fields_[2];
  Generation generations_[2];  // from one field to the other
  ferry::Halo halo_;           // goes first: it waits for the kernels that use the rest
  int done_ = 0;
};

}  // namespace life
