// The predefined callbacks, as procedures that a program may call (MPI 5.0, section 7.7).
#include "mpi/fortran/predefined.h"

extern "C" {

#define FERRY_COPY_FUNCTION(low, capital, Value, gives)                            \
  void low##_(int*, int*, Value*, Value* in, Value* out, int* flag, int* ierror) { \
    if (gives) {                                                                   \
      *out = *in;                                                                  \
    }                                                                              \
    *flag = ferry::fortran::Logical(gives);                                        \
    *ierror = MPI_SUCCESS;                                                         \
  }                                                                                \
  FERRY_NAMES(#low, capital, #low "_")

#define FERRY_DELETE_FUNCTION(low, capital, Value)                                \
  void low##_(int*, int*, Value*, Value*, int* ierror) { *ierror = MPI_SUCCESS; } \
  FERRY_NAMES(#low, capital, #low "_")

FERRY_COPY_FUNCTION(mpi_comm_dup_fn, "MPI_COMM_DUP_FN", MPI_Aint, 1);
FERRY_COPY_FUNCTION(mpi_type_dup_fn, "MPI_TYPE_DUP_FN", MPI_Aint, 1);
FERRY_COPY_FUNCTION(mpi_win_dup_fn, "MPI_WIN_DUP_FN", MPI_Aint, 1);
FERRY_COPY_FUNCTION(mpi_dup_fn, "MPI_DUP_FN", int, 1);
FERRY_COPY_FUNCTION(mpi_comm_null_copy_fn, "MPI_COMM_NULL_COPY_FN", MPI_Aint, 0);
FERRY_COPY_FUNCTION(mpi_type_null_copy_fn, "MPI_TYPE_NULL_COPY_FN", MPI_Aint, 0);
FERRY_COPY_FUNCTION(mpi_win_null_copy_fn, "MPI_WIN_NULL_COPY_FN", MPI_Aint, 0);
FERRY_COPY_FUNCTION(mpi_null_copy_fn, "MPI_NULL_COPY_FN", int, 0);
FERRY_DELETE_FUNCTION(mpi_comm_null_delete_fn, "MPI_COMM_NULL_DELETE_FN", MPI_Aint);
FERRY_DELETE_FUNCTION(mpi_type_null_delete_fn, "MPI_TYPE_NULL_DELETE_FN", MPI_Aint);
FERRY_DELETE_FUNCTION(mpi_win_null_delete_fn, "MPI_WIN_NULL_DELETE_FN", MPI_Aint);
FERRY_DELETE_FUNCTION(mpi_null_delete_fn, "MPI_NULL_DELETE_FN", int);

// Stands for no conversion: the library never calls it, and it converts nothing.
void mpi_conversion_fn_null_(void*, int*, int*, void*, MPI_Aint*, MPI_Aint*, int* ierror) {
  *ierror = MPI_SUCCESS;
}
FERRY_NAMES("mpi_conversion_fn_null", "MPI_CONVERSION_FN_NULL", "mpi_conversion_fn_null_");

void mpi_conversion_fn_null_c_(void*, int*, MPI_Count*, void*, MPI_Offset*, MPI_Aint*,
                               int* ierror) {
  *ierror = MPI_SUCCESS;
}

#ifdef FERRY_MPI_OF_OPENMPI
// They are procedures of a module of Open MPI's.
#define FERRY_IN_MODULE(low) FERRY_NAME("__mpi_f08_callbacks_MOD_" #low, #low "_")
FERRY_IN_MODULE(mpi_comm_dup_fn);
FERRY_IN_MODULE(mpi_type_dup_fn);
FERRY_IN_MODULE(mpi_win_dup_fn);
FERRY_IN_MODULE(mpi_comm_null_copy_fn);
FERRY_IN_MODULE(mpi_type_null_copy_fn);
FERRY_IN_MODULE(mpi_win_null_copy_fn);
FERRY_IN_MODULE(mpi_comm_null_delete_fn);
FERRY_IN_MODULE(mpi_type_null_delete_fn);
FERRY_IN_MODULE(mpi_win_null_delete_fn);
FERRY_IN_MODULE(mpi_conversion_fn_null);
#endif
}
