// How this process was started, for MPI_INFO_ENV and MPI_Info_create_env (MPI 5.0, section 11.2.1).
#pragma once

#include "client/mpi/handle/object.h"
#include "client/mpi/info/info.h"
#include "client/mpi/info/memory_kinds.h"

namespace ferry::mpi {

// All but the command and its arguments; what only MPI_Init settles is left out before it. Calling
// thread: any.
StartFacts FactsOfStart();
// The kinds of memory that this process' MPI serves, over its GPU backend. After MPI_Init.
const MemoryKinds& ServedMemoryKinds();
// Makes the contents of MPI_INFO_ENV. After MPI_Init.
Ref<Info> MakeEnvironment();

}  // namespace ferry::mpi
