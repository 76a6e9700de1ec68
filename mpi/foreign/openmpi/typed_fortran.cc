// The names that Open MPI's modules `mpi` and `mpi_f08` make programs take from the library beside
// procedures: sizes of types, comparisons of handles, constants, and what gfortran makes of a
// module's types. The procedures of mpi_f08 are other names of mpif.h's
// (mpi/fortran/definitions.py): Open MPI hands them addresses, too.
//
// Names and layouts are those of Open MPI 4 and 5 with gfortran 8 to 14.
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

#define FERRY_IN(module, name) asm("__" module "_MOD_" name)

// `type` is what gfortran calls it: the module that defines it, and its name.
#define FERRY_TYPE(name, module, type, number, Content)                                      \
  extern "C" {                                                                               \
  FERRY_SHOWN extern Content name##_initial FERRY_IN(module, "__def_init_" type);            \
  Content name##_initial = {};                                                               \
  FERRY_SHOWN void name##_copy(const void* from, void* to) FERRY_IN(module, "__copy_" type); \
  void name##_copy(const void* from, void* to) {                                             \
    *static_cast<Content*>(to) = *static_cast<const Content*>(from);                         \
  }                                                                                          \
  FERRY_SHOWN extern TypeTable name##_table FERRY_IN(module, "__vtab_" type);                \
  TypeTable name##_table = {number,      sizeof(Content), nullptr, &name##_initial,          \
                            name##_copy, nullptr,         nullptr};                          \
  }

// Open MPI 4 defines the types of mpi_f08 in mpi_f08_types, Open MPI 5 in mpi_types.
#define FERRY_TYPE_OF_4(low, number, Content) \
  FERRY_TYPE(low##_of_4, "mpi_f08_types", "mpi_f08_types_Mpi_" #low, number, Content)
#define FERRY_TYPE_OF_5(low, number, Content) \
  FERRY_TYPE(low##_of_5, "mpi_types", "mpi_types_Mpi_" #low, number, Content)

// Comparisons of handles, which are integers: by what Open MPI 5 calls them, and 4 too.
#define FERRY_COMPARISON(low, what, operation)              \
  extern "C" {                                              \
  FERRY_SHOWN int low##_##what(const int* a, const int* b)  \
      FERRY_IN("mpi_types", "ompi_" #low "_op_" #what);     \
  int low##_##what(const int* a, const int* b) {            \
    return ferry::fortran::Logical((*a)operation(*b));      \
  }                                                         \
  }                                                         \
  FERRY_NAME("__mpi_f08_types_MOD_ompi_" #low "_op_" #what, \
             "__mpi_types_MOD_ompi_" #low "_op_" #what);

#define FERRY_HANDLE(low, number_of_4, number_of_5) \
  FERRY_TYPE_OF_4(low, number_of_4, int)            \
  FERRY_TYPE_OF_5(low, number_of_5, int)            \
  FERRY_COMPARISON(low, eq, ==)                     \
  FERRY_COMPARISON(low, ne, !=)

FERRY_HANDLE(comm, 73600949, 65123268)
FERRY_HANDLE(datatype, 86896269, 29694876)
FERRY_HANDLE(errhandler, 15118478, 15295773)
FERRY_HANDLE(file, 70760613, 62282932)
FERRY_HANDLE(group, 20619574, 84906471)
FERRY_HANDLE(info, 53436151, 44958470)
FERRY_HANDLE(message, 90857150, 93716975)
FERRY_HANDLE(op, 68037098, 62794105)
FERRY_HANDLE(request, 92555974, 95415799)
FERRY_HANDLE(win, 58701395, 12067460)
FERRY_TYPE_OF_5(session, 44324094, int)  // without comparisons in Open MPI 5.0
FERRY_TYPE_OF_4(status, 3872507, MPI_Status)
FERRY_TYPE_OF_5(status, 13675146, MPI_Status)

// Fortran's own types, of which gfortran 14 has tables in each module that uses them.
FERRY_TYPE(c_ptr, "mpi_f08_types", "__iso_c_binding_C_ptr", 0, uintptr_t)
FERRY_TYPE(c_funptr, "mpi_f08_types", "__iso_c_binding_C_funptr", 0, uintptr_t)

// ---- Statuses -----------------------------------------------------------------------------------
//
// A status of mpi_f08 has the layout of one of mpif.h. Open MPI 4 has no such procedures. libmpi's
// functions are declared by a name of their own, since the header has inline ones of these names.

#define FERRY_STATUS(low, capital)                                                           \
  extern "C" int Convert_##low(const void* from, void* to) __asm__("PMPI_Status_" #low);     \
  extern "C" FERRY_SHOWN void mpi_status_##low##_(const void* from, void* to, int* ierror) { \
    ferry::fortran::Give(ierror, Convert_##low(from, to));                                   \
  }                                                                                          \
  FERRY_NAMES("mpi_status_" #low, "MPI_STATUS_" capital, "mpi_status_" #low "_");            \
  FERRY_NAME("mpi_status_" #low "_f08_", "mpi_status_" #low "_");                            \
  FERRY_NAMES("pmpi_status_" #low, "PMPI_STATUS_" capital, "mpi_status_" #low "_");          \
  FERRY_NAME("pmpi_status_" #low "_", "mpi_status_" #low "_");                               \
  FERRY_NAME("pmpi_status_" #low "_f08_", "mpi_status_" #low "_")

FERRY_STATUS(f2f08, "F2F08");
FERRY_STATUS(f082f, "F082F");

// ---- Constants ----------------------------------------------------------------------------------
//
// gfortran writes their values into programs; these are for programs that pass their addresses.

#define FERRY_CONSTANT(low, inner, value)                           \
  extern "C" {                                                      \
  FERRY_SHOWN extern const int low FERRY_IN("mpi_f08_types", #low); \
  const int low = (value);                                          \
  FERRY_SHOWN extern int ompi_f08_##inner;                          \
  int ompi_f08_##inner = (value);                                   \
  }
#include "mpi/foreign/openmpi/typed_constants.inc"
