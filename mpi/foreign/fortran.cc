// Between C and Fortran: handles as the integers that Fortran has for them, and statuses, which
// have one layout in both languages.
#include <cstring>

#include "mpi/foreign/convert.h"
#include "mpi/foreign/library.h"

// Defined by the family: what Fortran's MPI_STATUS_IGNORE is to C.
extern "C" int* MPI_F_STATUS_IGNORE;
extern "C" int* MPI_F_STATUSES_IGNORE;

namespace ferry::foreign {

// MPI 5.0 has X_toint beside X_c2f.
#define FERRY_NUMBERS(Kind, name)                                                                  \
  FERRY_FOREIGN(int, name##_toint, (TheirHandle handle)) { return FortranOf<MPI_##Kind>(handle); } \
  FERRY_FOREIGN(TheirHandle, name##_fromint, (int number)) {                                       \
    return OfFortran<MPI_##Kind>(number);                                                          \
  }                                                                                                \
  FERRY_FOREIGN(int, name##_c2f, (TheirHandle handle)) { return FortranOf<MPI_##Kind>(handle); }   \
  FERRY_FOREIGN(TheirHandle, name##_f2c, (int number)) { return OfFortran<MPI_##Kind>(number); }

FERRY_NUMBERS(Comm, Comm)
FERRY_NUMBERS(Errhandler, Errhandler)
FERRY_NUMBERS(Group, Group)
FERRY_NUMBERS(Info, Info)
FERRY_NUMBERS(Message, Message)
FERRY_NUMBERS(Op, Op)
FERRY_NUMBERS(Request, Request)
FERRY_NUMBERS(Session, Session)
FERRY_NUMBERS(Datatype, Type)
FERRY_NUMBERS(Win, Win)

namespace {

// The null file is 0 in Fortran, in all families.
int NumberOf(File file) {
  const MPI_File ours = OurFile(file);
  return ours == MPI_FILE_NULL ? 0 : abi.File_toint(ours);
}

File FileOf(int number) {
  return TheirFile(number == 0 ? MPI_FILE_NULL : abi.File_fromint(number));
}

}  // namespace

FERRY_FOREIGN(int, File_toint, (File file)) { return NumberOf(file); }
FERRY_FOREIGN(int, File_c2f, (File file)) { return NumberOf(file); }
FERRY_FOREIGN(File, File_fromint, (int number)) { return FileOf(number); }
FERRY_FOREIGN(File, File_f2c, (int number)) { return FileOf(number); }

int CopyStatus(const char* call, const void* from, void* to) {
  if (from == nullptr || to == nullptr || !IsStatus(static_cast<const Status*>(from)) ||
      from == MPI_F_STATUS_IGNORE || from == MPI_F_STATUSES_IGNORE) {
    return Refuse(call, MPI_ERR_ARG, "MPI_STATUS_IGNORE or a null pointer is no status");
  }
  std::memcpy(to, from, sizeof(Status));
  return MPI_SUCCESS;
}

FERRY_FOREIGN(int, Status_c2f, (const Status* c_status, int* f_status)) {
  return CopyStatus("MPI_Status_c2f", c_status, f_status);
}

FERRY_FOREIGN(int, Status_f2c, (const int* f_status, Status* c_status)) {
  return CopyStatus("MPI_Status_f2c", f_status, c_status);
}

}  // namespace ferry::foreign
