// The common blocks of mpif.h that stand for constants, and the predefined callbacks, as procedures
// that a program may call (MPI 5.0, sections 2.5.4 and 7.7).
#include "mpi/fortran/predefined.h"

extern "C" {

// All bits are set: what is read from them by mistake is no count, no index and no number.
alignas(32) const int ferry_mpi_bottom_[1] = {-1};
alignas(32) const int ferry_mpi_in_place_[1] = {-1};
alignas(32) const int ferry_mpi_buffer_automatic_[1] = {-1};
alignas(32) const int ferry_mpi_status_ignore_[8] = {-1, -1, -1, -1, -1, -1, -1, -1};
alignas(32) const int ferry_mpi_statuses_ignore_[8] = {-1, -1, -1, -1, -1, -1, -1, -1};
alignas(32) const int ferry_mpi_errcodes_ignore_[1] = {-1};
alignas(32) const int ferry_mpi_unweighted_[1] = {-1};
alignas(32) const int ferry_mpi_weights_empty_[1] = {-1};
alignas(32) const char ferry_mpi_argv_null_[1] = {'\xff'};
alignas(32) const char ferry_mpi_argvs_null_[1] = {'\xff'};

// ---- Predefined callbacks -----------------------------------------------------------------------

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

// ---- What the modules declare beside the procedures of the standard -----------------------------

FERRY_SHOWN int ferry_mpi_equal_(const int* a, const int* b) {
  return ferry::fortran::Logical(*a == *b);
}
FERRY_SHOWN int ferry_mpi_differ_(const int* a, const int* b) {
  return ferry::fortran::Logical(*a != *b);
}

// The first members of CFI_cdesc_t, which are in this order for every compiler (Fortran
// 2018, 18.5.3).
struct FerryDescriptor {
  void* base;
  size_t element_bytes;
};

FERRY_SHOWN void ferry_mpi_sizeof_(const FerryDescriptor* x, int* size, int* ierror) {
  *size = static_cast<int>(x->element_bytes);
  ferry::fortran::Give(ierror, MPI_SUCCESS);
}

// Both are the same eight integers.
#define FERRY_COPY_STATUS(name)                                  \
  FERRY_SHOWN void name(const int* from, int* to, int* ierror) { \
    std::memmove(to, from, sizeof(MPI_Status));                  \
    ferry::fortran::Give(ierror, MPI_SUCCESS);                   \
  }                                                              \
  static_assert(sizeof(MPI_Status) == 8 * sizeof(int))

FERRY_COPY_STATUS(mpi_status_f2f08_);
FERRY_COPY_STATUS(mpi_status_f082f_);
FERRY_COPY_STATUS(pmpi_status_f2f08_);
FERRY_COPY_STATUS(pmpi_status_f082f_);
}
