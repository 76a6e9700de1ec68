// How this process was started, for MPI_INFO_ENV and MPI_Info_create_env (MPI 5.0, section 11.2.1).
#pragma once

#include "client/mpi/handle/object.h"
#include "client/mpi/info/info.h"

namespace ferry::mpi {

// All but the command and its arguments; what only MPI_Init settles is left out before it. Calling
// thread: any.
StartFacts FactsOfStart();
// What MPI_INFO_ENV holds. After MPI_Init.
Ref<Info> MakeEnvironment();

}  // namespace ferry::mpi
