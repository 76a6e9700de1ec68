// A box of numbers that is divided among ranks along three axes; each iteration replaces a number
// by the mean of itself and its 26 neighbours, so that a block exchanges faces, edges and corners.
#pragma once

#include <vector>

#include "examples/common/process_grid.h"
#include "ferry/halo.h"

namespace halo3d {

using examples::Triple;

// Numbers with one more around them on all sides, as they lie in memory: `cells` without those.
size_t PaddedSize(const Triple& cells);
// Computes one iteration. The contents around `next` do not matter.
void Smooth(const Triple& cells, const double* current, double* next);
// Computes all numbers after so many iterations, in one process. Either the ends of each axis meet,
// or beyond them all is 0.
std::vector<double> SolveSerially(const Triple& cells, int iterations, bool is_periodic);

// The cells that a rank has: from first, count of them.
struct Part {
  Triple first;
  Triple count;
};
Part PartOf(const Triple& cells, const examples::ProcessGrid& grid, int rank);
double InitialValue(int x, int y, int z);
// Returns those of all numbers that belong to a part.
std::vector<double> ValuesOf(const std::vector<double>& all, const Triple& cells, const Part& part);

class Block {
 public:
  // Collective.
  Block(const Triple& cells, const examples::ProcessGrid& grid, bool is_periodic,
        ferry::Sends sends, ferry_stream stream);

  void Enqueue(int iterations);
  void Wait() { halo_.Wait(); }
  std::vector<double> Values() const;
  size_t neighbour_count() const { return halo_.neighbours().size(); }

 private:
  using Field = ferry::Buffer<double>;
  struct Iteration {
    const Block* block;
    const Field* current;
    Field* next;
  };
  static void RunIteration(void* argument);

  const Part part_;
  ferry_stream stream_;
  Field fields_[2];
  Iteration iterations_[2];
  ferry::Halo halo_;  // goes first: it waits for the kernels that use the rest
  int done_ = 0;
};

}  // namespace halo3d
