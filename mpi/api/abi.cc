// Calls by which the library describes itself where the binary interface leaves that to it, and by
// which a Fortran binding tells the library its sizes (MPI 5.0, chapter 20): Ferry's own
// (mpi/fortran), or another. These calls may precede MPI_Init.
#include <array>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <string>
#include <utility>

#include "mpi/api/call.h"
#include "mpi/api/function.h"
#include "mpi/base/handle_table.h"
#include "mpi/io/file.h"

namespace ferry::mpi {
namespace {

std::mutex mutex;  // guards what follows
Ref<Info>& fortran_info = *new Ref<Info>();
// By size: a Fortran binding has said what the truth values of that many bytes are.
std::array<bool, 17> logicals_known{};

// The sizes that mpi/datatype gives Fortran's types: those of every usual compiler.
constexpr std::array<std::pair<const char*, const char*>, 4> kFortranSizes = {{
    {"mpi_logical_size", "4"},
    {"mpi_integer_size", "4"},
    {"mpi_real_size", "4"},
    {"mpi_double_precision_size", "8"},
}};

// Fails with MPI_ERR_ABI if the binding counts on other sizes.
Failure CheckSizes(const Info& info) {
  for (const auto& [key, value] : kFortranSizes) {
    const std::optional<std::string> wanted = info.Find(key);
    if (wanted && *wanted != value) {
      return {MPI_ERR_ABI,
              std::string(key) + " is " + *wanted + "; Ferry's type has " + value + " bytes"};
    }
  }
  return {};
}

void NeedLogical(Call& call, int logical_size, const void* logical_true,
                 const void* logical_false) {
  call.Need(logical_true, "logical_true", logical_false, "logical_false");
  if (logical_size != 1 && logical_size != 2 && logical_size != 4 && logical_size != 8 &&
      logical_size != 16) {
    call.Refuse(MPI_ERR_ARG, "logical_size is " + std::to_string(logical_size) +
                                 "; it must be 1, 2, 4, 8 or 16 bytes");
  }
}

// A truth value as reductions give it: the integer 1 or 0 of this size.
std::array<char, 16> TruthValue(bool value) { return {static_cast<char>(value ? 1 : 0)}; }

}  // namespace

FERRY_MPI_CALL(int, MPI_Abi_get_info, (MPI_Info * info)) {
  Call call(FERRY_MPI_NAME);
  call.Need(info, "info");
  return call.Then([&] {
    call.Give(MakeRef<Info>(std::vector<Info::Entry>{
                  {"mpi_aint_size", std::to_string(sizeof(MPI_Aint))},
                  {"mpi_count_size", std::to_string(sizeof(MPI_Count))},
                  {"mpi_offset_size", std::to_string(sizeof(MPI_Offset))}}),
              info);
  });
}

FERRY_MPI_CALL(int, MPI_Abi_get_fortran_info, (MPI_Info * info)) {
  Call call(FERRY_MPI_NAME);
  call.Need(info, "info");
  return call.Then([&] {
    std::lock_guard lock(mutex);
    *info = MPI_INFO_NULL;
    if (fortran_info) {
      call.Give(fortran_info->Copy(), info);
    }
  });
}

FERRY_MPI_CALL(int, MPI_Abi_set_fortran_info, (MPI_Info info)) {
  Call call(FERRY_MPI_NAME);
  const Info* const given = call.Find(info);
  FERRY_RETURN_ERROR(call.result());
  std::lock_guard lock(mutex);
  if (fortran_info) {
    return call.Return({MPI_ERR_ABI, "it was called before, and counts once"});
  }
  if (const Failure failure = CheckSizes(*given); !failure.ok()) {
    return call.Return(failure);
  }
  fortran_info = given->Copy();
  return MPI_SUCCESS;
}

FERRY_MPI_CALL(int, MPI_Abi_get_fortran_booleans,
               (int logical_size, void* logical_true, void* logical_false, int* is_set)) {
  Call call(FERRY_MPI_NAME);
  NeedLogical(call, logical_size, logical_true, logical_false);
  call.Need(is_set, "is_set");
  return call.Then([&] {
    std::lock_guard lock(mutex);
    *is_set = logicals_known.at(static_cast<size_t>(logical_size)) ? 1 : 0;
    if (*is_set == 1) {
      std::memcpy(logical_true, TruthValue(true).data(), static_cast<size_t>(logical_size));
      std::memcpy(logical_false, TruthValue(false).data(), static_cast<size_t>(logical_size));
    }
  });
}

FERRY_MPI_CALL(int, MPI_Abi_set_fortran_booleans,
               (int logical_size, void* logical_true, void* logical_false)) {
  Call call(FERRY_MPI_NAME);
  NeedLogical(call, logical_size, logical_true, logical_false);
  FERRY_RETURN_ERROR(call.result());
  const auto bytes = static_cast<size_t>(logical_size);
  std::lock_guard lock(mutex);
  bool& known = logicals_known.at(bytes);
  if (known) {
    return call.Return({MPI_ERR_ABI, "it was called before for this size, and counts once"});
  }
  if (std::memcmp(logical_true, TruthValue(true).data(), bytes) != 0 ||
      std::memcmp(logical_false, TruthValue(false).data(), bytes) != 0) {
    return call.Return({MPI_ERR_ABI, "Ferry's truth values are the integers 1 and 0"});
  }
  known = true;
  return MPI_SUCCESS;
}

// Hardware that the process is bound to has no names yet, so there is nothing to say of it.
FERRY_MPI_CALL(int, MPI_Get_hw_resource_info, (MPI_Info * hw_info)) {
  Call call(FERRY_MPI_NAME);
  call.NeedRunning();
  call.Need(hw_info, "hw_info");
  return call.Then([&] { call.Give(MakeRef<Info>(), hw_info); });
}

// ---- Handles as integers, for languages without pointers ----------------------------------------
//
// Predefined handles are the constants of the standard, others count from 4096. Any time; no
// handler sees an error, for these calls have no way to report one: what is no handle becomes 0,
// and 0 is no handle.

#define FERRY_HANDLE_NUMBER(to_number, to_handle, Handle, table)                       \
  FERRY_MPI_CALL(int, to_number, (Handle handle)) { return (table).NumberOf(handle); } \
  FERRY_MPI_CALL(Handle, to_handle, (int number)) { return (table).HandleOf(number); }

FERRY_HANDLE_NUMBER(MPI_Comm_toint, MPI_Comm_fromint, MPI_Comm, comms)
FERRY_HANDLE_NUMBER(MPI_Errhandler_toint, MPI_Errhandler_fromint, MPI_Errhandler, error_handlers)
FERRY_HANDLE_NUMBER(MPI_File_toint, MPI_File_fromint, MPI_File, files)
FERRY_HANDLE_NUMBER(MPI_Group_toint, MPI_Group_fromint, MPI_Group, groups)
FERRY_HANDLE_NUMBER(MPI_Info_toint, MPI_Info_fromint, MPI_Info, infos)
FERRY_HANDLE_NUMBER(MPI_Message_toint, MPI_Message_fromint, MPI_Message, matched_messages)
FERRY_HANDLE_NUMBER(MPI_Op_toint, MPI_Op_fromint, MPI_Op, ops)
FERRY_HANDLE_NUMBER(MPI_Request_toint, MPI_Request_fromint, MPI_Request, requests)
FERRY_HANDLE_NUMBER(MPI_Session_toint, MPI_Session_fromint, MPI_Session, sessions)
FERRY_HANDLE_NUMBER(MPI_Type_toint, MPI_Type_fromint, MPI_Datatype, datatypes)
FERRY_HANDLE_NUMBER(MPI_Win_toint, MPI_Win_fromint, MPI_Win, wins)

}  // namespace ferry::mpi
