// Names that libmpi.so.12 shows beside the standard's functions: MPICH's own, and data.
#include <algorithm>
#include <cstring>

#include "mpi/foreign/convert.h"
#include "mpi/foreign/library.h"

// ---- Callbacks ----------------------------------------------------------------------------------

// MPI_COMM_DUP_FN and its like are this in their interface: it copies the value as it is. MPI never
// calls it, but a program may.
extern "C" FERRY_SHOWN int MPIR_Dup_fn(int, int, void*, void* in, void* out, int* flag) {
  *static_cast<void**>(out) = in;
  *flag = 1;
  return MPI_SUCCESS;
}

// ---- Data ---------------------------------------------------------------------------------------
//
// The loader copies these into programs that name them, before any code runs: they have their
// values from the start.

#undef MPI_UNWEIGHTED
#undef MPI_WEIGHTS_EMPTY
#undef MPI_T_PVAR_ALL_HANDLES

namespace {

struct F08Status {
  int words[5];
};

}  // namespace

extern "C" {
// The numbers of the standard's interface, so that nothing needs to be translated.
extern FERRY_SHOWN int* const MPI_UNWEIGHTED;
extern FERRY_SHOWN int* const MPI_WEIGHTS_EMPTY;
extern FERRY_SHOWN MPI_T_pvar_handle const MPI_T_PVAR_ALL_HANDLES;
int* const MPI_UNWEIGHTED = reinterpret_cast<int*>(uintptr_t{10});
int* const MPI_WEIGHTS_EMPTY = reinterpret_cast<int*>(uintptr_t{11});
MPI_T_pvar_handle const MPI_T_PVAR_ALL_HANDLES = reinterpret_cast<MPI_T_pvar_handle>(uintptr_t{1});

// For mpi_f08. A library for Fortran has them too, empty, and its own are found first.
FERRY_SHOWN int* MPIR_C_MPI_UNWEIGHTED = nullptr;
FERRY_SHOWN int* MPIR_C_MPI_WEIGHTS_EMPTY = nullptr;
// A library for Fortran sets the first two.
FERRY_SHOWN int* MPI_F_STATUS_IGNORE = nullptr;
FERRY_SHOWN int* MPI_F_STATUSES_IGNORE = nullptr;
FERRY_SHOWN F08Status MPIR_F08_MPI_STATUS_IGNORE_OBJ = {};
FERRY_SHOWN F08Status MPIR_F08_MPI_STATUSES_IGNORE_OBJ[1] = {};
FERRY_SHOWN int MPIR_F08_MPI_IN_PLACE = 0;
FERRY_SHOWN int MPIR_F08_MPI_BOTTOM = 0;
FERRY_SHOWN F08Status* MPI_F08_STATUS_IGNORE = &MPIR_F08_MPI_STATUS_IGNORE_OBJ;
FERRY_SHOWN F08Status* MPI_F08_STATUSES_IGNORE = MPIR_F08_MPI_STATUSES_IGNORE_OBJ;
}

namespace {

__attribute__((constructor)) void FillFortransPlaces() {
  MPIR_C_MPI_UNWEIGHTED = MPI_UNWEIGHTED;
  MPIR_C_MPI_WEIGHTS_EMPTY = MPI_WEIGHTS_EMPTY;
}

}  // namespace

// ---- MPICH's own --------------------------------------------------------------------------------

namespace ferry::foreign {

FERRY_EXTENSION(int, Delete_error_class, (int errorclass)) {
  return TheirCode(abi.Remove_error_class(OurCode(errorclass)));
}

FERRY_EXTENSION(int, Delete_error_code, (int errorcode)) {
  return TheirCode(abi.Remove_error_code(OurCode(errorcode)));
}

FERRY_EXTENSION(int, Delete_error_string, (int errorcode)) {
  return TheirCode(abi.Remove_error_string(OurCode(errorcode)));
}

// Says whether the GPU backend of the job serves GPUs of this type.
FERRY_EXTENSION(int, GPU_query_support, (int gpu_type, int* is_supported)) {
  constexpr const char* kKinds[] = {"cuda", "level_zero", "rocm"};
  if (is_supported == nullptr || gpu_type < 0 || gpu_type > 2) {
    return Refuse("MPIX_GPU_query_support", MPI_ERR_ARG,
                  "no type of GPU, or no place for the answer");
  }
  *is_supported = HasMemoryKind(kKinds[gpu_type]) ? 1 : 0;
  return MPI_SUCCESS;
}

FERRY_EXTENSION(int, Query_ze_support, (void)) { return HasMemoryKind("level_zero") ? 1 : 0; }
FERRY_EXTENSION(int, Query_hip_support, (void)) { return HasMemoryKind("rocm") ? 1 : 0; }

// Ferry has neither a job that outlives its ranks, nor generalised requests that MPI polls, nor
// MPICH's streams and communicators of threads. MPICH's library for Fortran is bound to all of
// these names when it is loaded, whether a program calls them or not.
#define FERRY_MISSING(name)                                                                       \
  FERRY_EXTENSION(int, name, (void)) {                                                            \
    return Refuse("MPIX_" #name, MPI_ERR_UNSUPPORTED_OPERATION, "Ferry does not have this call"); \
  }

FERRY_MISSING(Comm_agree)
FERRY_MISSING(Comm_failure_ack)
FERRY_MISSING(Comm_failure_get_acked)
FERRY_MISSING(Comm_get_failed)
FERRY_MISSING(Comm_revoke)
FERRY_MISSING(Comm_shrink)
FERRY_MISSING(Grequest_class_allocate)
FERRY_MISSING(Grequest_class_create)
FERRY_MISSING(Grequest_start)
FERRY_MISSING(Info_set_hex)
FERRY_MISSING(Type_iov)
FERRY_MISSING(Type_iov_len)
FERRY_MISSING(Start_progress_thread)
FERRY_MISSING(Stop_progress_thread)
FERRY_MISSING(Comm_get_stream)
FERRY_MISSING(Stream_comm_create)
FERRY_MISSING(Stream_comm_create_multiplex)
FERRY_MISSING(Stream_create)
FERRY_MISSING(Stream_free)
FERRY_MISSING(Stream_progress)
FERRY_MISSING(Stream_irecv)
FERRY_MISSING(Stream_irecv_c)
FERRY_MISSING(Stream_isend)
FERRY_MISSING(Stream_isend_c)
FERRY_MISSING(Stream_recv)
FERRY_MISSING(Stream_recv_c)
FERRY_MISSING(Stream_send)
FERRY_MISSING(Stream_send_c)
FERRY_MISSING(Allreduce_enqueue)
FERRY_MISSING(Allreduce_enqueue_c)
FERRY_MISSING(Irecv_enqueue)
FERRY_MISSING(Irecv_enqueue_c)
FERRY_MISSING(Isend_enqueue)
FERRY_MISSING(Isend_enqueue_c)
FERRY_MISSING(Recv_enqueue)
FERRY_MISSING(Recv_enqueue_c)
FERRY_MISSING(Send_enqueue)
FERRY_MISSING(Send_enqueue_c)
FERRY_MISSING(Wait_enqueue)
FERRY_MISSING(Waitall_enqueue)
FERRY_MISSING(Comm_test_threadcomm)
FERRY_MISSING(Threadcomm_finish)
FERRY_MISSING(Threadcomm_free)
FERRY_MISSING(Threadcomm_init)
FERRY_MISSING(Threadcomm_start)

}  // namespace ferry::foreign
