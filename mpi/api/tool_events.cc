// The tool information interface: events and their sources (MPI 5.0, section 15.3.8), of which
// Ferry has none. A tool that asks how many there are needs no other of these calls; they fail as
// for an index, a name or a handle that does not exist.
#include <string>

#include "mpi/api/function.h"
#include "mpi/api/tool_call.h"

namespace ferry::mpi {
namespace {

int PutNone(const char* name, int* number, const char* argument) {
  ToolCall call(name);
  call.Need(number, argument);
  return call.Then([&] { *number = 0; });
}

int RefuseIndex(const char* name, int index, const char* what) {
  ToolCall call(name);
  call.NeedIndex(index, 0, what);
  return call.result();
}

int RefuseHandle(const char* name) {
  ToolCall call(name);
  call.Refuse(MPI_T_ERR_INVALID_HANDLE, "there are no events, so the handle stands for none");
  return call.result();
}

constexpr char kEvents[] = "event types";
constexpr char kSources[] = "event sources";

}  // namespace

// ---- Sources ------------------------------------------------------------------------------------

FERRY_MPI_CALL(int, MPI_T_source_get_num, (int* num_sources)) {
  return PutNone(FERRY_MPI_NAME, num_sources, "num_sources");
}

FERRY_MPI_CALL(int, MPI_T_source_get_info,
               (int source_index, char*, int*, char*, int*, MPI_T_source_order*, MPI_Count*,
                MPI_Count*, MPI_Info*)) {
  return RefuseIndex(FERRY_MPI_NAME, source_index, kSources);
}

FERRY_MPI_CALL(int, MPI_T_source_get_timestamp, (int source_index, MPI_Count*)) {
  return RefuseIndex(FERRY_MPI_NAME, source_index, kSources);
}

// ---- Types of events ----------------------------------------------------------------------------

FERRY_MPI_CALL(int, MPI_T_event_get_num, (int* num_events)) {
  return PutNone(FERRY_MPI_NAME, num_events, "num_events");
}

FERRY_MPI_CALL(int, MPI_T_event_get_info,
               (int event_index, char*, int*, int*, MPI_Datatype[], MPI_Aint[], int*, MPI_T_enum*,
                MPI_Info*, char*, int*, int*)) {
  return RefuseIndex(FERRY_MPI_NAME, event_index, kEvents);
}

FERRY_MPI_CALL(int, MPI_T_event_get_index, (const char* name, int* event_index)) {
  ToolCall call(FERRY_MPI_NAME);
  call.Need(name, "name");
  call.Need(event_index, "event_index");
  if (call.ok()) {
    call.Refuse(MPI_T_ERR_INVALID_NAME, "there is no event \"" + std::string(name) + "\"");
  }
  return call.result();
}

FERRY_MPI_CALL(int, MPI_T_event_handle_alloc,
               (int event_index, void*, MPI_Info, MPI_T_event_registration*)) {
  return RefuseIndex(FERRY_MPI_NAME, event_index, kEvents);
}

// ---- Handles and instances ----------------------------------------------------------------------

FERRY_MPI_CALL(int, MPI_T_event_handle_set_info, (MPI_T_event_registration, MPI_Info)) {
  return RefuseHandle(FERRY_MPI_NAME);
}

FERRY_MPI_CALL(int, MPI_T_event_handle_get_info, (MPI_T_event_registration, MPI_Info*)) {
  return RefuseHandle(FERRY_MPI_NAME);
}

FERRY_MPI_CALL(int, MPI_T_event_handle_free,
               (MPI_T_event_registration, void*, MPI_T_event_free_cb_function)) {
  return RefuseHandle(FERRY_MPI_NAME);
}

FERRY_MPI_CALL(int, MPI_T_event_register_callback,
               (MPI_T_event_registration, MPI_T_cb_safety, MPI_Info, void*,
                MPI_T_event_cb_function)) {
  return RefuseHandle(FERRY_MPI_NAME);
}

FERRY_MPI_CALL(int, MPI_T_event_callback_set_info,
               (MPI_T_event_registration, MPI_T_cb_safety, MPI_Info)) {
  return RefuseHandle(FERRY_MPI_NAME);
}

FERRY_MPI_CALL(int, MPI_T_event_callback_get_info,
               (MPI_T_event_registration, MPI_T_cb_safety, MPI_Info*)) {
  return RefuseHandle(FERRY_MPI_NAME);
}

FERRY_MPI_CALL(int, MPI_T_event_set_dropped_handler,
               (MPI_T_event_registration, MPI_T_event_dropped_cb_function)) {
  return RefuseHandle(FERRY_MPI_NAME);
}

FERRY_MPI_CALL(int, MPI_T_event_read, (MPI_T_event_instance, int, void*)) {
  return RefuseHandle(FERRY_MPI_NAME);
}

FERRY_MPI_CALL(int, MPI_T_event_copy, (MPI_T_event_instance, void*)) {
  return RefuseHandle(FERRY_MPI_NAME);
}

FERRY_MPI_CALL(int, MPI_T_event_get_timestamp, (MPI_T_event_instance, MPI_Count*)) {
  return RefuseHandle(FERRY_MPI_NAME);
}

FERRY_MPI_CALL(int, MPI_T_event_get_source, (MPI_T_event_instance, int*)) {
  return RefuseHandle(FERRY_MPI_NAME);
}

}  // namespace ferry::mpi
