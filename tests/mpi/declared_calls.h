// The names of the calls that mpi.h declares, read from its own headers.
#pragma once

#include <string>
#include <vector>

namespace ferry::mpi {

// All of them, such as "MPI_Send".
std::vector<std::string> DeclaredCalls();

}  // namespace ferry::mpi
