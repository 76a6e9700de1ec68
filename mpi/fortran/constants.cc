// The common blocks of mpif.h that stand for constants (MPI 5.0, section 2.5.4), and what the
// modules have beside the procedures.
#include "mpi/fortran/binding.h"

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
