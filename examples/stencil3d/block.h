// The seven-point stencil in a box of points that is divided along all three axes: each rank
// exchanges up to six faces in an iteration, all at once, like the 3DStencil that GPU-aware MPI for
// Intel GPUs was measured with (Chen et al., section V-G).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "examples/common/array.h"
#include "examples/common/process_grid.h"
#include "examples/common/stencil.h"
#include "examples/stencil3d/seven_point.h"

namespace stencil3d {

// The values at the start: a pattern in which no two lines are alike.
double InitialValue(int x, int y, int z);

// One rank's points with one more around them: a neighbour's, or the fixed edge. Faces do not lie
// in one piece, so they are gathered next to the field, in the same memory: by the CPU here, since
// it can read the host backend's device memory; by a kernel on another backend.
class Block : public examples::Part {
 public:
  Block(const Triple& points, const examples::ProcessGrid& grid, int rank, examples::Memory memory);

  const std::vector<examples::Face>& PackFaces() override;
  void ComputeInside() override;
  void ComputeRest() override;
  std::vector<double> Values() const override;

 private:
  // The data that goes to one neighbour and comes from it.
  struct Side {
    int peer = 0;
    int send_tag = 0;
    int receive_tag = 0;
    Box sent;      // this rank's outermost points
    Box received;  // the neighbour's, beyond them
  };

  static std::vector<Side> SidesOf(const examples::ProcessGrid& grid, int rank, const Box& own);
  static size_t PointsOf(const std::vector<Side>& sides);

  const Box own_;  // within the field, in which point 0 is the halo
  const Triple extent_;
  const Layers layers_;
  examples::Array current_;
  examples::Array next_;
  const std::vector<Side> sides_;
  examples::Array sent_;
  examples::Array received_;
  std::vector<examples::Face> faces_;  // of sides_, in sent_ and received_
};

class Space : public examples::Problem {
 public:
  // Makes the problem. Null, with the reason in *mistake, if that many ranks do not form the grid
  // or cannot have a point each.
  static std::unique_ptr<Space> Make(const examples::StencilArguments& arguments, int ranks,
                                     std::string* mistake);

  std::string Describe() const override;
  std::unique_ptr<examples::Part> MakePart(int rank) const override;
  std::vector<double> SolveSerially(int iterations) const override;
  std::vector<double> ValuesOf(const std::vector<double>& all, int rank) const override;
  double PointsPerIteration() const override;

 private:
  Space(const Triple& points, const examples::ProcessGrid& grid, examples::Memory memory)
      : points_(points), grid_(grid), memory_(memory) {}

  const Triple points_;
  const examples::ProcessGrid grid_;
  const examples::Memory memory_;
};

}  // namespace stencil3d
