// The names that Open MPI's modules `mpi` and `mpi_f08` make programs take from the library beside
// procedures: sizes of types, comparisons of handles, constants, and what gfortran makes of a
// module's types. The procedures of mpi_f08 are other names of mpif.h's
// (mpi/fortran/definitions.py): Open MPI hands them addresses, too.
//
// Names and layouts are those of Open MPI 4 with gfortran 8 to 14.
#include <cstdint>

#include "mpi/fortran/binding.h"

// ---- Sizes --------------------------------------------------------------------------------------
//
// MPI_Sizeof is generic over types and ranks: a procedure for each, of which the name says all.

namespace {

void GiveSize(int bytes, int* size, int* ierror) {
  *size = bytes;
  ferry::fortran::Give(ierror, MPI_SUCCESS);
}

}  // namespace

#define FERRY_SIZE(bytes)                                                         \
  extern "C" void ferry_mpi_sizeof_##bytes(const void*, int* size, int* ierror) { \
    GiveSize(bytes, size, ierror);                                                \
  }
#define FERRY_SIZEOF_OF(prefix, type, bytes)                                                  \
  asm(".irp rank, scalar, r1, r2, r3, r4, r5, r6, r7, r8, r9, r10, r11, r12, r13, r14, r15\n" \
      ".globl " prefix "_sizeof_" type                                                        \
      "_\\rank\\()_\n"                                                                        \
      ".set " prefix "_sizeof_" type "_\\rank\\()_, ferry_mpi_sizeof_" #bytes "\n.endr")
#define FERRY_SIZEOF(type, bytes)       \
  FERRY_SIZEOF_OF("mpi", #type, bytes); \
  FERRY_SIZEOF_OF("pmpi", #type, bytes)

FERRY_SIZE(1)
FERRY_SIZE(2)
FERRY_SIZE(4)
FERRY_SIZE(8)
FERRY_SIZE(16)
FERRY_SIZE(32)
FERRY_SIZEOF(character, 1);
FERRY_SIZEOF(logical, 4);
FERRY_SIZEOF(int8, 1);
FERRY_SIZEOF(int16, 2);
FERRY_SIZEOF(int32, 4);
FERRY_SIZEOF(int64, 8);
FERRY_SIZEOF(real32, 4);
FERRY_SIZEOF(real64, 8);
FERRY_SIZEOF(real128, 16);
FERRY_SIZEOF(complex32, 8);
FERRY_SIZEOF(complex64, 16);
FERRY_SIZEOF(complex128, 32);

// ---- Types --------------------------------------------------------------------------------------

namespace {

// The table by which gfortran tells the type of a polymorphic object. Its number is the one that
// gfortran makes of the type's name.
struct TypeTable {
  int32_t number;
  int64_t size;
  const void* extended;
  const void* initial;
  void (*copy)(const void* from, void* to);
  const void* final;
  const void* deallocate;
};
static_assert(sizeof(TypeTable) == 56);

}  // namespace

#define FERRY_IN_TYPES(name) asm("__mpi_f08_types_MOD_" name)

#define FERRY_TYPE(low, number, Content)                                                         \
  extern "C" {                                                                                   \
  FERRY_SHOWN extern Content low##_initial FERRY_IN_TYPES("__def_init_mpi_f08_types_Mpi_" #low); \
  Content low##_initial = {};                                                                    \
  FERRY_SHOWN void low##_copy(const void* from, void* to)                                        \
      FERRY_IN_TYPES("__copy_mpi_f08_types_Mpi_" #low);                                          \
  void low##_copy(const void* from, void* to) {                                                  \
    *static_cast<Content*>(to) = *static_cast<const Content*>(from);                             \
  }                                                                                              \
  FERRY_SHOWN extern TypeTable low##_table FERRY_IN_TYPES("__vtab_mpi_f08_types_Mpi_" #low);     \
  TypeTable low##_table = {number,     sizeof(Content), nullptr, &low##_initial,                 \
                           low##_copy, nullptr,         nullptr};                                \
  }

// With comparisons of handles, which are integers.
#define FERRY_HANDLE(low, number)                                                                 \
  FERRY_TYPE(low, number, int)                                                                    \
  extern "C" {                                                                                    \
  FERRY_SHOWN int low##_equal(const int* a, const int* b) FERRY_IN_TYPES("ompi_" #low "_op_eq");  \
  int low##_equal(const int* a, const int* b) { return ferry::fortran::Logical(*a == *b); }       \
  FERRY_SHOWN int low##_differ(const int* a, const int* b) FERRY_IN_TYPES("ompi_" #low "_op_ne"); \
  int low##_differ(const int* a, const int* b) { return ferry::fortran::Logical(*a != *b); }      \
  }

FERRY_HANDLE(comm, 73600949)
FERRY_HANDLE(datatype, 86896269)
FERRY_HANDLE(errhandler, 15118478)
FERRY_HANDLE(file, 70760613)
FERRY_HANDLE(group, 20619574)
FERRY_HANDLE(info, 53436151)
FERRY_HANDLE(message, 90857150)
FERRY_HANDLE(op, 68037098)
FERRY_HANDLE(request, 92555974)
FERRY_HANDLE(win, 58701395)
FERRY_TYPE(status, 3872507, MPI_Status)

// ---- Constants ----------------------------------------------------------------------------------
//
// gfortran writes their values into programs; these are for programs that pass their addresses.

#define FERRY_CONSTANT(low, inner, value)                \
  extern "C" {                                           \
  FERRY_SHOWN extern const int low FERRY_IN_TYPES(#low); \
  const int low = (value);                               \
  FERRY_SHOWN extern int ompi_f08_##inner;               \
  int ompi_f08_##inner = (value);                        \
  }
#include "mpi/foreign/openmpi/typed_constants.inc"
