// Handles as integers, for languages without pointers (MPI 5.0, chapter 20): predefined handles are
// the constants of the standard, others count from 1024. Any time; no handler sees an error, for
// these calls have no way to report one: what is no handle becomes 0, and 0 is no handle.
#include <mpi.h>

#include "client/mpi/api/function.h"
#include "client/mpi/base/handle_table.h"

namespace ferry::mpi {
namespace {

// Kinds of objects that Ferry does not have: only their predefined handles exist.
template <typename Handle>
struct PredefinedOnly {
  static int NumberOf(Handle handle) {
    const auto number = reinterpret_cast<uintptr_t>(handle);
    return number < kPredefinedHandles ? static_cast<int>(number) : 0;
  }
  static Handle HandleOf(int number) {
    const bool predefined = number >= 0 && static_cast<uintptr_t>(number) < kPredefinedHandles;
    return reinterpret_cast<Handle>(predefined ? static_cast<uintptr_t>(number) : 0);
  }
};

constexpr PredefinedOnly<MPI_File> kFiles;
constexpr PredefinedOnly<MPI_Session> kSessions;
constexpr PredefinedOnly<MPI_Win> kWindows;

}  // namespace

#define FERRY_HANDLE_NUMBER(kind, Handle, table)                                          \
  FERRY_MPI_CALL(int, kind##_toint, (Handle handle)) { return (table).NumberOf(handle); } \
  FERRY_MPI_CALL(Handle, kind##_fromint, (int number)) { return (table).HandleOf(number); }

FERRY_HANDLE_NUMBER(Comm, MPI_Comm, comms)
FERRY_HANDLE_NUMBER(Errhandler, MPI_Errhandler, error_handlers)
FERRY_HANDLE_NUMBER(File, MPI_File, kFiles)
FERRY_HANDLE_NUMBER(Group, MPI_Group, groups)
FERRY_HANDLE_NUMBER(Info, MPI_Info, infos)
FERRY_HANDLE_NUMBER(Message, MPI_Message, matched_messages)
FERRY_HANDLE_NUMBER(Op, MPI_Op, ops)
FERRY_HANDLE_NUMBER(Request, MPI_Request, requests)
FERRY_HANDLE_NUMBER(Session, MPI_Session, kSessions)
FERRY_HANDLE_NUMBER(Type, MPI_Datatype, datatypes)
FERRY_HANDLE_NUMBER(Win, MPI_Win, kWindows)

}  // namespace ferry::mpi
