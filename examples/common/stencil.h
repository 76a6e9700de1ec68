// The code that the stencils share: iterations whose faces travel, straight or staged by hand,
// while the points that need none of them are computed; the time that these take; and the
// comparison with a serial solve.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "examples/common/arguments.h"
#include "examples/common/exchange.h"

namespace examples {

// One rank's part of a problem, at one iteration.
class Part {
 public:
  virtual ~Part() = default;
  // The faces this iteration exchanges, packed where not contiguous. Valid until the
  // next call.
  virtual const std::vector<Face>& PackFaces() = 0;
  // Computes the points that need none of the neighbours'.
  virtual void ComputeInside() = 0;
  // Computes the other points, once the faces are in. Ends the iteration.
  virtual void ComputeRest() = 0;
  // This rank's interior points.
  virtual std::vector<double> Values() const = 0;
};

class Problem {
 public:
  virtual ~Problem() = default;
  // "66 x 66 x 66 points, ranks 2 x 2 x 2"
  virtual std::string Describe() const = 0;
  virtual std::unique_ptr<Part> MakePart(int rank) const = 0;
  // Computes all points of the problem, in one process.
  virtual std::vector<double> SolveSerially(int iterations) const = 0;
  // Returns those of `all` points that `rank` has, in the order of its Values.
  virtual std::vector<double> ValuesOf(const std::vector<double>& all, int rank) const = 0;
  // Points that all ranks together compute in one iteration.
  virtual double PointsPerIteration() const = 0;
};

// Makes the problem for so many ranks. Null if they do not fit it, and *mistake says why.
using MakeProblem = std::function<std::unique_ptr<Problem>(const StencilArguments& arguments,
                                                           int ranks, std::string* mistake)>;

// Joins the job, solves, reports on rank 0. Returns the exit code of the process.
int StencilMain(int argc, char** argv, const StencilProgram& program, const MakeProblem& make);

}  // namespace examples
