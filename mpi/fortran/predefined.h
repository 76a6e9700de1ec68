// The predefined callbacks, as Fortran's procedures. A program passes them to the calls that make
// keyvals, which know them by their address.
#pragma once

#include "mpi/fortran/binding.h"

extern "C" {

#define FERRY_DECLARE_COPY(name, Value) \
  FERRY_SHOWN void name(int*, int*, Value*, Value* in, Value* out, int* flag, int* ierror)
#define FERRY_DECLARE_DELETE(name, Value) \
  FERRY_SHOWN void name(int*, int*, Value*, Value*, int* ierror)

FERRY_DECLARE_COPY(mpi_comm_dup_fn_, MPI_Aint);
FERRY_DECLARE_COPY(mpi_type_dup_fn_, MPI_Aint);
FERRY_DECLARE_COPY(mpi_win_dup_fn_, MPI_Aint);
FERRY_DECLARE_COPY(mpi_dup_fn_, int);
FERRY_DECLARE_COPY(mpi_comm_null_copy_fn_, MPI_Aint);
FERRY_DECLARE_COPY(mpi_type_null_copy_fn_, MPI_Aint);
FERRY_DECLARE_COPY(mpi_win_null_copy_fn_, MPI_Aint);
FERRY_DECLARE_COPY(mpi_null_copy_fn_, int);
FERRY_DECLARE_DELETE(mpi_comm_null_delete_fn_, MPI_Aint);
FERRY_DECLARE_DELETE(mpi_type_null_delete_fn_, MPI_Aint);
FERRY_DECLARE_DELETE(mpi_win_null_delete_fn_, MPI_Aint);
FERRY_DECLARE_DELETE(mpi_null_delete_fn_, int);
FERRY_SHOWN void mpi_conversion_fn_null_(void*, int*, int*, void*, MPI_Aint*, MPI_Aint*,
                                         int* ierror);
FERRY_SHOWN void mpi_conversion_fn_null_c_(void*, int*, MPI_Count*, void*, MPI_Offset*, MPI_Aint*,
                                           int* ierror);

#undef FERRY_DECLARE_COPY
#undef FERRY_DECLARE_DELETE
}
