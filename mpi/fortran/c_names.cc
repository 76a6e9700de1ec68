// The conversions of handles and statuses under the names that C has them by (MPI 5.0, sections
// 19.3.4 and 19.3.5), as functions: mpi.h has macros, which programs that declare these names on
// their own do not see.
#include "mpi/fortran/binding.h"

// Parameters, result and body of a function that is named only for the linker: its name in C is a
// macro or a function of mpi.h.
#define FERRY_C_NAME(symbol, identifier, Result, Parameter, body)       \
  FERRY_SHOWN Result ferry_fortran_##identifier(Parameter) asm(symbol); \
  Result ferry_fortran_##identifier(Parameter value) { return body(value); }

#define FERRY_C_NAMES(kind, Handle)                                                                \
  FERRY_C_NAME("MPI_" #kind "_c2f", kind##_c2f, MPI_Fint, Handle, MPI_##kind##_toint)              \
  FERRY_C_NAME("MPI_" #kind "_f2c", kind##_f2c, Handle, MPI_Fint, MPI_##kind##_fromint)            \
  FERRY_C_NAME("PMPI_" #kind "_c2f", profiled_##kind##_c2f, MPI_Fint, Handle, PMPI_##kind##_toint) \
  FERRY_C_NAME("PMPI_" #kind "_f2c", profiled_##kind##_f2c, Handle, MPI_Fint, PMPI_##kind##_fromint)

#define FERRY_C_STATUS(name, From, To)                                                       \
  FERRY_SHOWN int ferry_fortran_##name(const From* from, To* to) asm("MPI_Status_" #name);   \
  int ferry_fortran_##name(const From* from, To* to) { return MPI_Status_##name(from, to); } \
  FERRY_NAME("PMPI_Status_" #name, "MPI_Status_" #name);

extern "C" {

FERRY_C_NAMES(Comm, MPI_Comm)
FERRY_C_NAMES(Errhandler, MPI_Errhandler)
FERRY_C_NAMES(File, MPI_File)
FERRY_C_NAMES(Group, MPI_Group)
FERRY_C_NAMES(Info, MPI_Info)
FERRY_C_NAMES(Message, MPI_Message)
FERRY_C_NAMES(Op, MPI_Op)
FERRY_C_NAMES(Request, MPI_Request)
FERRY_C_NAMES(Session, MPI_Session)
FERRY_C_NAMES(Type, MPI_Datatype)
FERRY_C_NAMES(Win, MPI_Win)

FERRY_C_STATUS(c2f, MPI_Status, MPI_Fint)
FERRY_C_STATUS(f2c, MPI_Fint, MPI_Status)
FERRY_C_STATUS(c2f08, MPI_Status, MPI_F08_status)
FERRY_C_STATUS(f082c, MPI_F08_status, MPI_Status)
FERRY_C_STATUS(f2f08, MPI_Fint, MPI_F08_status)
FERRY_C_STATUS(f082f, MPI_F08_status, MPI_Fint)
}
