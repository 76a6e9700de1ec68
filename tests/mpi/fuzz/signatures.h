// Every call that mpi.h declares and Ferry has, read from its own headers, and those of mpix.h:
// name, parameters, and a way to call it with words instead of typed arguments.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace ferry::mpi {

struct Parameter {
  std::string type;  // as declared, without its name: "const int[]", "MPI_Comm*"
  std::string name;
};

struct CallSignature {
  std::string name;  // "MPI_Send"
  std::vector<Parameter> parameters;
  // Takes one word for each argument: an integer, a pointer or a handle. Returns the call's result,
  // if it is an int.
  std::function<int(const uint64_t* words)> call;
};

// Excludes calls that begin and end MPI or the job, and calls that return no integer. Sorted as in
// the headers.
std::vector<CallSignature> AllSignatures();

}  // namespace ferry::mpi
