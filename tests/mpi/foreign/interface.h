/* What the programs here need to know of the binary interface for which they are compiled: MPICH's
 * or Open MPI's.
 */
#ifndef FERRY_TESTS_MPI_FOREIGN_INTERFACE_H_
#define FERRY_TESTS_MPI_FOREIGN_INTERFACE_H_

#include <stdint.h>

#if defined(IS_OPEN_MPI)
/* Its header declares what the standard has no more only for some compilers. */
#define OMPI_OMIT_MPI1_COMPAT_DECLS 0
#define OMPI_REMOVED_USE_STATIC_ASSERT 0
#endif

#include "tests/mpi/ranks/check.h"

#if defined(IS_OPEN_MPI)

#if !defined(OPEN_MPI)
#error "this is not Open MPI's mpi.h"
#endif
#define LIBRARY_VERSION "Open MPI v4.1.4"
#define LIBRARY_STANDARD 301
extern struct ompi_predefined_datatype_t ompi_mpi_lb, ompi_mpi_ub, ompi_mpi_real2;
#define MPI_LB ((MPI_Datatype)(void*)&ompi_mpi_lb)
#define MPI_UB ((MPI_Datatype)(void*)&ompi_mpi_ub)
#define FLOAT16 ((MPI_Datatype)(void*)&ompi_mpi_real2)
/* The places of fields in a status of Fortran. */
#define MPI_F_SOURCE 0
#define MPI_F_STATUS_SIZE 6

#else

#if !defined(MPICH_NAME)
#error "this is not MPICH's mpi.h"
#endif
#define LIBRARY_VERSION "MPICH Version:"
#define LIBRARY_STANDARD 401
#define FLOAT16 MPIX_C_FLOAT16

#endif

/* Ends MPI. Returns what main returns. */
static inline int end_of_rank(void) {
  const int own = rank;
  OK(MPI_Finalize());
  printf("rank %d: ok\n", own);
  return 0;
}

#endif /* FERRY_TESTS_MPI_FOREIGN_INTERFACE_H_ */
