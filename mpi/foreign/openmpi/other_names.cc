// Names that libmpi.so.40 shows beside the standard's functions: Open MPI's own, and data.
#include "mpi/foreign/convert.h"
#include "mpi/foreign/library.h"

// ---- Callbacks ----------------------------------------------------------------------------------
//
// The functions that MPI_COMM_NULL_COPY_FN and its like are. MPI never calls them, but a program
// may.

extern "C" {

#define FERRY_ATTRIBUTE_FUNCTIONS(kind)                                                           \
  FERRY_SHOWN int OMPI_C_MPI_##kind##NULL_COPY_FN(ferry::foreign::TheirHandle, int, void*, void*, \
                                                  void*, int* flag) {                             \
    *flag = 0;                                                                                    \
    return MPI_SUCCESS;                                                                           \
  }                                                                                               \
  FERRY_SHOWN int OMPI_C_MPI_##kind##DUP_FN(ferry::foreign::TheirHandle, int, void*, void* in,    \
                                            void* out, int* flag) {                               \
    *static_cast<void**>(out) = in;                                                               \
    *flag = 1;                                                                                    \
    return MPI_SUCCESS;                                                                           \
  }                                                                                               \
  FERRY_SHOWN int OMPI_C_MPI_##kind##NULL_DELETE_FN(ferry::foreign::TheirHandle, int, void*,      \
                                                    void*) {                                      \
    return MPI_SUCCESS;                                                                           \
  }

FERRY_ATTRIBUTE_FUNCTIONS()
FERRY_ATTRIBUTE_FUNCTIONS(COMM_)
FERRY_ATTRIBUTE_FUNCTIONS(TYPE_)
FERRY_ATTRIBUTE_FUNCTIONS(WIN_)

// ---- Fortran's constants ------------------------------------------------------------------------
//
// COMMON blocks, of which the addresses count. A program in Fortran has its own, and the loader
// makes them one.

FERRY_SHOWN int mpi_fortran_bottom_ = 0;
FERRY_SHOWN int mpi_fortran_in_place_ = 0;
FERRY_SHOWN int mpi_fortran_unweighted_ = 0;
FERRY_SHOWN int mpi_fortran_weights_empty_ = 0;
FERRY_SHOWN int mpi_fortran_errcodes_ignore_ = 0;
FERRY_SHOWN char mpi_fortran_argv_null_ = 0;
FERRY_SHOWN char mpi_fortran_argvs_null_ = 0;
FERRY_SHOWN int mpi_fortran_status_ignore_[6] = {};
FERRY_SHOWN int mpi_fortran_statuses_ignore_[6] = {};

FERRY_SHOWN int* MPI_F_STATUS_IGNORE = mpi_fortran_status_ignore_;
FERRY_SHOWN int* MPI_F_STATUSES_IGNORE = mpi_fortran_statuses_ignore_;

}  // extern "C"

namespace ferry::foreign {

FERRY_EXTENSION(int, Query_rocm_support, (void)) { return HasMemoryKind("rocm") ? 1 : 0; }

}  // namespace ferry::foreign
