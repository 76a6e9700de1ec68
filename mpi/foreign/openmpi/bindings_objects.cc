// MPI::COMM_WORLD and the other objects of Open MPI's bindings for C++.
//
// The loader copies them into programs that name them, before any code runs: so they have their
// values from the start, as pairs of a pointer to the class's virtual functions and a handle.
#include <cstdio>

#include "mpi/foreign/openmpi/communicators.h"

// ---- Handles ------------------------------------------------------------------------------------

namespace ferry::bindings {

struct Object {
  const char* functions;
  const void* handle;
};

// Two words stand before the first function: the offset of the object, and the class.
constexpr int kBeforeFunctions = 2 * sizeof(void*);

}  // namespace ferry::bindings

#define FERRY_FUNCTIONS(Class, length) \
  extern "C" const char functions_of_##Class[] asm("_ZTVN3MPI" #length #Class "E")
FERRY_FUNCTIONS(Comm_Null, 9);
FERRY_FUNCTIONS(Datatype, 8);
FERRY_FUNCTIONS(Errhandler, 10);
FERRY_FUNCTIONS(File, 4);
FERRY_FUNCTIONS(Group, 5);
FERRY_FUNCTIONS(Info, 4);
FERRY_FUNCTIONS(Intracomm, 9);
FERRY_FUNCTIONS(Op, 2);
FERRY_FUNCTIONS(Request, 7);
FERRY_FUNCTIONS(Win, 3);

#define FERRY_OBJECT(Class, name, handle) \
  ferry::bindings::Object name = {functions_of_##Class + ferry::bindings::kBeforeFunctions, handle};

#pragma GCC visibility push(default)
namespace MPI {

FERRY_OBJECT(Comm_Null, COMM_NULL, ompi_mpi_comm_null)
FERRY_OBJECT(Intracomm, COMM_WORLD, ompi_mpi_comm_world)
FERRY_OBJECT(Intracomm, COMM_SELF, ompi_mpi_comm_self)
FERRY_OBJECT(Group, GROUP_NULL, ompi_mpi_group_null)
FERRY_OBJECT(Group, GROUP_EMPTY, ompi_mpi_group_empty)
FERRY_OBJECT(Win, WIN_NULL, ompi_mpi_win_null)
FERRY_OBJECT(Info, INFO_NULL, ompi_mpi_info_null)
FERRY_OBJECT(Request, REQUEST_NULL, ompi_request_null)
FERRY_OBJECT(File, FILE_NULL, ompi_mpi_file_null)

FERRY_OBJECT(Errhandler, ERRHANDLER_NULL, ompi_mpi_errhandler_null)
FERRY_OBJECT(Errhandler, ERRORS_ARE_FATAL, ompi_mpi_errors_are_fatal)
FERRY_OBJECT(Errhandler, ERRORS_RETURN, ompi_mpi_errors_return)
// MPI::Init makes it.
FERRY_OBJECT(Errhandler, ERRORS_THROW_EXCEPTIONS, ompi_mpi_errhandler_null)

FERRY_OBJECT(Op, OP_NULL, ompi_mpi_op_null)
FERRY_OBJECT(Op, MAX, ompi_mpi_op_max)
FERRY_OBJECT(Op, MIN, ompi_mpi_op_min)
FERRY_OBJECT(Op, SUM, ompi_mpi_op_sum)
FERRY_OBJECT(Op, PROD, ompi_mpi_op_prod)
FERRY_OBJECT(Op, MAXLOC, ompi_mpi_op_maxloc)
FERRY_OBJECT(Op, MINLOC, ompi_mpi_op_minloc)
FERRY_OBJECT(Op, BAND, ompi_mpi_op_band)
FERRY_OBJECT(Op, BOR, ompi_mpi_op_bor)
FERRY_OBJECT(Op, BXOR, ompi_mpi_op_bxor)
FERRY_OBJECT(Op, LAND, ompi_mpi_op_land)
FERRY_OBJECT(Op, LOR, ompi_mpi_op_lor)
FERRY_OBJECT(Op, LXOR, ompi_mpi_op_lxor)
FERRY_OBJECT(Op, REPLACE, ompi_mpi_op_replace)

FERRY_OBJECT(Datatype, DATATYPE_NULL, ompi_mpi_datatype_null)
FERRY_OBJECT(Datatype, CHAR, ompi_mpi_char)
FERRY_OBJECT(Datatype, SHORT, ompi_mpi_short)
FERRY_OBJECT(Datatype, INT, ompi_mpi_int)
FERRY_OBJECT(Datatype, LONG, ompi_mpi_long)
FERRY_OBJECT(Datatype, LONG_LONG, ompi_mpi_long_long_int)
FERRY_OBJECT(Datatype, SIGNED_CHAR, ompi_mpi_signed_char)
FERRY_OBJECT(Datatype, UNSIGNED_CHAR, ompi_mpi_unsigned_char)
FERRY_OBJECT(Datatype, UNSIGNED_SHORT, ompi_mpi_unsigned_short)
FERRY_OBJECT(Datatype, UNSIGNED, ompi_mpi_unsigned)
FERRY_OBJECT(Datatype, UNSIGNED_LONG, ompi_mpi_unsigned_long)
FERRY_OBJECT(Datatype, UNSIGNED_LONG_LONG, ompi_mpi_unsigned_long_long)
FERRY_OBJECT(Datatype, FLOAT, ompi_mpi_float)
FERRY_OBJECT(Datatype, DOUBLE, ompi_mpi_double)
FERRY_OBJECT(Datatype, LONG_DOUBLE, ompi_mpi_long_double)
FERRY_OBJECT(Datatype, BYTE, ompi_mpi_byte)
FERRY_OBJECT(Datatype, PACKED, ompi_mpi_packed)
FERRY_OBJECT(Datatype, WCHAR, ompi_mpi_wchar)
FERRY_OBJECT(Datatype, BOOL, ompi_mpi_cxx_bool)
FERRY_OBJECT(Datatype, COMPLEX, ompi_mpi_cxx_cplex)
FERRY_OBJECT(Datatype, DOUBLE_COMPLEX, ompi_mpi_cxx_dblcplex)
FERRY_OBJECT(Datatype, LONG_DOUBLE_COMPLEX, ompi_mpi_cxx_ldblcplex)
FERRY_OBJECT(Datatype, FLOAT_INT, ompi_mpi_float_int)
FERRY_OBJECT(Datatype, DOUBLE_INT, ompi_mpi_double_int)
FERRY_OBJECT(Datatype, LONG_INT, ompi_mpi_long_int)
FERRY_OBJECT(Datatype, TWOINT, ompi_mpi_2int)
FERRY_OBJECT(Datatype, SHORT_INT, ompi_mpi_short_int)
FERRY_OBJECT(Datatype, LONG_DOUBLE_INT, ompi_mpi_longdbl_int)
// In Open MPI, too, this is no pair.
FERRY_OBJECT(Datatype, LONG_LONG_INT, ompi_mpi_long_long_int)

FERRY_OBJECT(Datatype, INTEGER, ompi_mpi_integer)
FERRY_OBJECT(Datatype, REAL, ompi_mpi_real)
FERRY_OBJECT(Datatype, DOUBLE_PRECISION, ompi_mpi_dblprec)
FERRY_OBJECT(Datatype, F_COMPLEX, ompi_mpi_cplex)
FERRY_OBJECT(Datatype, LOGICAL, ompi_mpi_logical)
FERRY_OBJECT(Datatype, CHARACTER, ompi_mpi_character)
FERRY_OBJECT(Datatype, TWOREAL, ompi_mpi_2real)
FERRY_OBJECT(Datatype, TWODOUBLE_PRECISION, ompi_mpi_2dblprec)
FERRY_OBJECT(Datatype, TWOINTEGER, ompi_mpi_2integer)
// Open MPI 4 mistakes these for types of other sizes (INTEGER2 for 4 bytes, INTEGER4 for 2).
FERRY_OBJECT(Datatype, INTEGER1, ompi_mpi_integer1)
FERRY_OBJECT(Datatype, INTEGER2, ompi_mpi_integer2)
FERRY_OBJECT(Datatype, INTEGER4, ompi_mpi_integer4)
FERRY_OBJECT(Datatype, REAL2, ompi_mpi_real2)
FERRY_OBJECT(Datatype, REAL4, ompi_mpi_real4)
FERRY_OBJECT(Datatype, REAL8, ompi_mpi_real8)
FERRY_OBJECT(Datatype, F_DOUBLE_COMPLEX, ompi_mpi_dblcplex)

// ---- Other constants ----------------------------------------------------------------------------

extern void* const BOTTOM;
extern void* const IN_PLACE;
extern const char ompi_libcxx_version_string[];
void* const BOTTOM = MPI_BOTTOM;
void* const IN_PLACE = MPI_IN_PLACE;
const char ompi_libcxx_version_string[] = "Open MPI v4.1.4 (Ferry)";
const char** ARGV_NULL = nullptr;
const char*** ARGVS_NULL = nullptr;

// ---- Errors that would be exceptions ------------------------------------------------------------

// Open MPI is built without exceptions: the code of the last error is here.
int mpi_errno = MPI_SUCCESS;

}  // namespace MPI

namespace {

void KeepCode(MPI_Comm*, int* code, ...) {
  std::fputs("MPI::mpi_errno has the error code: C++ exceptions are not thrown\n", stderr);
  MPI::mpi_errno = *code;
}

}  // namespace

#pragma GCC visibility push(default)
namespace MPI {

// MPI::Init calls it, which is inline.
void InitializeIntercepts() {
  if (ERRORS_THROW_EXCEPTIONS.handle == ompi_mpi_errhandler_null) {
    MPI_Errhandler made = MPI_ERRHANDLER_NULL;
    PMPI_Comm_create_errhandler(KeepCode, &made);
    ERRORS_THROW_EXCEPTIONS.handle = made;
  }
}

}  // namespace MPI
