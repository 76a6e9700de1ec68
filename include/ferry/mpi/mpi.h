/* mpi.h - MPI 5.0 for C and C++, with the binary interface (ABI 1.0) of its chapter 20.
 *
 * A program that was compiled with this header runs on every library with that interface
 * (libmpi_abi), and a program that was compiled with another conforming header runs on Ferry. Every
 * call exists as MPI_x and PMPI_x (the profiling interface of chapter 15).
 *
 * Calls return MPI_SUCCESS or an error class, after the error handler of the object has run; then
 * MPI_Error_string adds this thread's last message. The standard says what a call does, which
 * thread may make it and whether it waits; docs/mpi.md says which calls Ferry does not have yet:
 * those return MPI_ERR_UNSUPPORTED_OPERATION. Fortran has mpif.h and modules (docs/fortran.md).
 *
 * Compile with ferrycc or ferrycxx, start with ferryrun.
 */
#ifndef FERRY_MPI_MPI_H_
#define FERRY_MPI_MPI_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#include "ferry_mpi/callbacks.h"
#include "ferry_mpi/collectives.h"
#include "ferry_mpi/collectives_init.h"
#include "ferry_mpi/communicators.h"
#include "ferry_mpi/constants.h"
#include "ferry_mpi/datatypes.h"
#include "ferry_mpi/environment.h"
#include "ferry_mpi/files.h"
#include "ferry_mpi/fortran_handles.h"
#include "ferry_mpi/handles.h"
#include "ferry_mpi/neighbours.h"
#include "ferry_mpi/partitioned.h"
#include "ferry_mpi/point_to_point.h"
#include "ferry_mpi/processes.h"
#include "ferry_mpi/sessions.h"
#include "ferry_mpi/tool_types.h"
#include "ferry_mpi/tools.h"
#include "ferry_mpi/windows.h"

#ifdef __cplusplus
}
#endif

#undef FERRY_MPI

#endif /* FERRY_MPI_MPI_H_ */
