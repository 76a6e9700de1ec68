/* partitioned.h - MPI 5.0 chapter 4 (partitioned point to point): declarations. See mpi.h. */
#ifndef FERRY_MPI_PARTITIONED_H_
#define FERRY_MPI_PARTITIONED_H_

#include "handles.h"

/* clang-format off */

/* ---- Requests -------------------------------------------------------------------------------- */

FERRY_MPI(int, Precv_init, (void* buf, int partitions, MPI_Count count, MPI_Datatype datatype,
          int dest, int tag, MPI_Comm comm, MPI_Info info, MPI_Request* request));
FERRY_MPI(int, Psend_init, (const void* buf, int partitions, MPI_Count count, MPI_Datatype datatype,
          int dest, int tag, MPI_Comm comm, MPI_Info info, MPI_Request* request));

/* ---- Partitions ------------------------------------------------------------------------------ */

FERRY_MPI(int, Parrived, (MPI_Request request, int partition, int* flag));
FERRY_MPI(int, Pready, (int partition, MPI_Request request));
FERRY_MPI(int, Pready_list, (int length, const int array_of_partitions[], MPI_Request request));
FERRY_MPI(int, Pready_range, (int partition_low, int partition_high, MPI_Request request));

/* clang-format on */

#endif /* FERRY_MPI_PARTITIONED_H_ */
