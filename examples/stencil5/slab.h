// The five-point stencil on a plane that is divided by rows, as DCFA-MPI was measured with (Si et
// al., "DCFA-MPI", section V): ranks exchange a row with each neighbour, OpenMP threads share a
// rank's rows.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "examples/common/array.h"
#include "examples/common/process_grid.h"
#include "examples/common/stencil.h"

namespace stencil5 {

// The values at the start: a pattern in which no two rows are alike.
double InitialValue(int column, int row);

// One rank's rows with one more on either side: a neighbour's, or the fixed edge. They lie in one
// piece, so faces are sent from and received into the field itself.
class Slab : public examples::Part {
 public:
  Slab(int width, int height, int ranks, int rank, examples::Memory memory, int threads);

  const std::vector<examples::Face>& PackFaces() override;
  void ComputeInside() override { Compute(2, range_.count); }
  void ComputeRest() override;
  std::vector<double> Values() const override;

 private:
  double* Row(int row) const;
  // Computes rows [first, last), each by one thread.
  void Compute(int first, int last);

  const int width_;
  const examples::Range range_;
  const int ranks_;
  const int rank_;
  const int threads_;
  examples::Array current_;
  examples::Array next_;
  std::vector<examples::Face> faces_;
};

class Plane : public examples::Problem {
 public:
  // Makes the problem. Null, with the reason in *mistake, if that many ranks cannot have a row
  // each. `threads` may be 0.
  static std::unique_ptr<Plane> Make(const examples::StencilArguments& arguments, int ranks,
                                     int threads, std::string* mistake);

  std::string Describe() const override;
  std::unique_ptr<examples::Part> MakePart(int rank) const override;
  std::vector<double> SolveSerially(int iterations) const override;
  std::vector<double> ValuesOf(const std::vector<double>& all, int rank) const override;
  double PointsPerIteration() const override;

 private:
  Plane(int width, int height, int ranks, int threads, examples::Memory memory)
      : width_(width), height_(height), ranks_(ranks), threads_(threads), memory_(memory) {}

  const int width_;
  const int height_;
  const int ranks_;
  const int threads_;
  const examples::Memory memory_;
};

}  // namespace stencil5
