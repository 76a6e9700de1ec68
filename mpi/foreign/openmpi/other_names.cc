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
// Open MPI 5. The constants of mpi_f08 are the same blocks.
FERRY_SHOWN int* MPI_F08_STATUS_IGNORE = mpi_fortran_status_ignore_;
FERRY_SHOWN int* MPI_F08_STATUSES_IGNORE = mpi_fortran_statuses_ignore_;

}  // extern "C"

// ---- Open MPI 5 ---------------------------------------------------------------------------------

namespace ferry::foreign {

// A status of mpi_f08 has the layout of one in C, too.
#define FERRY_COPY_STATUS(name)                                     \
  FERRY_FOREIGN(int, Status_##name, (const void* from, void* to)) { \
    return CopyStatus("MPI_Status_" #name, from, to);               \
  }

FERRY_COPY_STATUS(c2f08)
FERRY_COPY_STATUS(f082c)
FERRY_COPY_STATUS(f2f08)
FERRY_COPY_STATUS(f082f)

// The standard has no such function. Ferry knows no hint that a session could be given later, and
// unknown ones are ignored: what is left are the handles, which are looked at.
FERRY_FOREIGN(int, Session_set_info, (TheirHandle session, TheirHandle info)) {
  int hints = 0;
  int code = abi.Info_get_nkeys(Ours<MPI_Info>(info), &hints);
  MPI_Info used = MPI_INFO_NULL;
  if (code == MPI_SUCCESS) {
    code = abi.Session_get_info(Ours<MPI_Session>(session), &used);
  }
  if (code == MPI_SUCCESS) {
    code = abi.Info_free(&used);
  }
  return TheirCode(code);
}

FERRY_EXTENSION(int, Query_rocm_support, (void)) { return HasMemoryKind("rocm") ? 1 : 0; }

// Ferry has no job that outlives its ranks.
#define FERRY_MISSING(name)                                                                       \
  FERRY_EXTENSION(int, name, (void)) {                                                            \
    return Refuse("MPIX_" #name, MPI_ERR_UNSUPPORTED_OPERATION, "Ferry does not have this call"); \
  }

FERRY_MISSING(Comm_ack_failed)
FERRY_MISSING(Comm_agree)
FERRY_MISSING(Comm_failure_ack)
FERRY_MISSING(Comm_failure_get_acked)
FERRY_MISSING(Comm_get_failed)
FERRY_MISSING(Comm_iagree)
FERRY_MISSING(Comm_is_revoked)
FERRY_MISSING(Comm_revoke)
FERRY_MISSING(Comm_shrink)

}  // namespace ferry::foreign
