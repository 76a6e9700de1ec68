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

namespace ferry::foreign {

// ---- Between C and Fortran: one layout, one set of numbers --------------------------------------

extern "C" int foreign_File_toint(File) asm("PMPI_File_toint");
extern "C" File foreign_File_fromint(int) asm("PMPI_File_fromint");

FERRY_FOREIGN(int, File_c2f, (File file)) { return foreign_File_toint(file); }
FERRY_FOREIGN(File, File_f2c, (int number)) { return foreign_File_fromint(number); }

namespace {

int CopyStatus(const char* call, const void* from, void* to) {
  if (from == nullptr || to == nullptr || !IsStatus(static_cast<const Status*>(from)) ||
      from == MPI_F_STATUS_IGNORE || from == MPI_F_STATUSES_IGNORE) {
    return Refuse(call, MPI_ERR_ARG, "MPI_STATUS_IGNORE or a null pointer is no status");
  }
  std::memcpy(to, from, sizeof(Status));
  return MPI_SUCCESS;
}

}  // namespace

FERRY_FOREIGN(int, Status_c2f, (const Status* c_status, int* f_status)) {
  return CopyStatus("MPI_Status_c2f", c_status, f_status);
}

FERRY_FOREIGN(int, Status_f2c, (const int* f_status, Status* c_status)) {
  return CopyStatus("MPI_Status_f2c", f_status, c_status);
}

}  // namespace ferry::foreign

// ---- MPICH's own --------------------------------------------------------------------------------

#undef FERRY_FOREIGN
#define FERRY_FOREIGN(result, name, parameters)                                  \
  extern "C" FERRY_SHOWN result foreign_x_##name parameters asm("PMPIX_" #name); \
  asm(".weak MPIX_" #name "\n.set MPIX_" #name ", PMPIX_" #name);                \
  extern "C" result foreign_x_##name parameters

namespace ferry::foreign {

FERRY_FOREIGN(int, Delete_error_class, (int errorclass)) {
  return TheirCode(abi.Remove_error_class(OurCode(errorclass)));
}

FERRY_FOREIGN(int, Delete_error_code, (int errorcode)) {
  return TheirCode(abi.Remove_error_code(OurCode(errorcode)));
}

FERRY_FOREIGN(int, Delete_error_string, (int errorcode)) {
  return TheirCode(abi.Remove_error_string(OurCode(errorcode)));
}

namespace {

// Returns true if MPI serves memory of this kind, as it says of MPI_COMM_SELF.
bool HasKind(const char* kind) {
  int running = 0;
  int finalized = 0;
  MPI_Info info = MPI_INFO_NULL;
  if (abi.Initialized(&running) != MPI_SUCCESS || running == 0 ||
      abi.Finalized(&finalized) != MPI_SUCCESS || finalized != 0 ||
      abi.Comm_get_info(MPI_COMM_SELF, &info) != MPI_SUCCESS) {
    return false;
  }
  char kinds[MPI_MAX_INFO_VAL] = "";
  int length = sizeof(kinds);
  int is_there = 0;
  abi.Info_get_string(info, "mpi_memory_alloc_kinds", &length, kinds, &is_there);
  abi.Info_free(&info);
  for (const char* one = kinds; is_there != 0 && one != nullptr;) {
    const size_t size = std::strcspn(one, ":,");
    if (size == std::strlen(kind) && std::strncmp(one, kind, size) == 0) {
      return true;
    }
    one = std::strchr(one, ',');
    one = one == nullptr ? nullptr : one + 1;
  }
  return false;
}

}  // namespace

// Says whether the GPU backend of the job serves GPUs of this type.
FERRY_FOREIGN(int, GPU_query_support, (int gpu_type, int* is_supported)) {
  constexpr const char* kKinds[] = {"cuda", "level_zero", "rocm"};
  if (is_supported == nullptr || gpu_type < 0 || gpu_type > 2) {
    return Refuse("MPIX_GPU_query_support", MPI_ERR_ARG,
                  "no type of GPU, or no place for the answer");
  }
  *is_supported = HasKind(kKinds[gpu_type]) ? 1 : 0;
  return MPI_SUCCESS;
}

FERRY_FOREIGN(int, Query_cuda_support, (void)) { return HasKind("cuda") ? 1 : 0; }
FERRY_FOREIGN(int, Query_ze_support, (void)) { return HasKind("level_zero") ? 1 : 0; }
FERRY_FOREIGN(int, Query_hip_support, (void)) { return HasKind("rocm") ? 1 : 0; }

// Ferry has neither a job that outlives its ranks, nor generalised requests that MPI polls.
#define FERRY_MISSING(name)                                                                       \
  FERRY_FOREIGN(int, name, (void)) {                                                              \
    return Refuse("MPIX_" #name, MPI_ERR_UNSUPPORTED_OPERATION, "Ferry does not have this call"); \
  }

FERRY_MISSING(Comm_agree)
FERRY_MISSING(Comm_failure_ack)
FERRY_MISSING(Comm_failure_get_acked)
FERRY_MISSING(Comm_revoke)
FERRY_MISSING(Comm_shrink)
FERRY_MISSING(Grequest_class_allocate)
FERRY_MISSING(Grequest_class_create)
FERRY_MISSING(Grequest_start)

}  // namespace ferry::foreign
