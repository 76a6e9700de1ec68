#include "tests/mpi/declared_calls.h"

#include "ferry/mpi/mpi.h"

namespace ferry::mpi {

// The headers are read again, for the names.
#undef FERRY_MPI_COLLECTIVES_H_
#undef FERRY_MPI_COLLECTIVES_INIT_H_
#undef FERRY_MPI_COMMUNICATORS_H_
#undef FERRY_MPI_DATATYPES_H_
#undef FERRY_MPI_ENVIRONMENT_H_
#undef FERRY_MPI_FILES_H_
#undef FERRY_MPI_NEIGHBOURS_H_
#undef FERRY_MPI_PARTITIONED_H_
#undef FERRY_MPI_POINT_TO_POINT_H_
#undef FERRY_MPI_PROCESSES_H_
#undef FERRY_MPI_SESSIONS_H_
#undef FERRY_MPI_TOOLS_H_
#undef FERRY_MPI_WINDOWS_H_

std::vector<std::string> DeclaredCalls() {
  std::vector<std::string> calls;
#define FERRY_MPI(result, name, parameters) calls.push_back("MPI_" #name)
#include "ferry/mpi/ferry_mpi/collectives.h"
#include "ferry/mpi/ferry_mpi/collectives_init.h"
#include "ferry/mpi/ferry_mpi/communicators.h"
#include "ferry/mpi/ferry_mpi/datatypes.h"
#include "ferry/mpi/ferry_mpi/environment.h"
#include "ferry/mpi/ferry_mpi/files.h"
#include "ferry/mpi/ferry_mpi/neighbours.h"
#include "ferry/mpi/ferry_mpi/partitioned.h"
#include "ferry/mpi/ferry_mpi/point_to_point.h"
#include "ferry/mpi/ferry_mpi/processes.h"
#include "ferry/mpi/ferry_mpi/sessions.h"
#include "ferry/mpi/ferry_mpi/tools.h"
#include "ferry/mpi/ferry_mpi/windows.h"
  return calls;
}

}  // namespace ferry::mpi
