// The tool information interface: events and their source (MPI 5.0, section 15.3.8).
//
// Callbacks may call most functions of this file, so none of them calls a callback under the lock
// of a ToolCall.
#include <algorithm>
#include <string>
#include <utility>

#include "common/clock.h"
#include "mpi/api/function.h"
#include "mpi/api/tool_call.h"
#include "mpi/base/handle_table.h"
#include "mpi/info/info.h"
#include "mpi/mpi_t/events.h"

namespace ferry::mpi {
namespace {

constexpr char kEvents[] = "event types";
constexpr char kSources[] = "event sources";
constexpr size_t kSourceCount = 1;
constexpr MPI_Count kTicksPerSecond = 1'000'000'000;

EventHub& Hub() { return EventHub::Instance(); }

const EventType& TypeAt(int index) { return EventTypes()[static_cast<size_t>(index)]; }

// An info object of the tool's own. Ferry knows no hints for events.
void PutInfo(ToolCall& call, MPI_Info* to) {
  if (!call.ok() || to == nullptr) {
    return;
  }
  Ref<Info> info = MakeRef<Info>();
  *to = infos.Add(info.get());
  if (*to == MPI_INFO_NULL) {
    call.Refuse(MPI_T_ERR_MEMORY, "there is no memory for another info object");
    return;
  }
  (void)info.Leave();
}

void NeedInfo(ToolCall& call, MPI_Info info) {
  if (info != MPI_INFO_NULL && infos.Find(info) == nullptr) {
    call.Refuse(MPI_T_ERR_INVALID, "info is no info object");
  }
}

void NeedLevel(ToolCall& call, MPI_T_cb_safety level) {
  if (level != MPI_T_CB_REQUIRE_NONE && level != MPI_T_CB_REQUIRE_MPI_RESTRICTED &&
      level != MPI_T_CB_REQUIRE_THREAD_SAFE && level != MPI_T_CB_REQUIRE_ASYNC_SIGNAL_SAFE) {
    call.Refuse(MPI_T_ERR_INVALID, "cb_safety is none of the levels MPI_T_CB_REQUIRE_*");
  }
}

void NeedRegistration(ToolCall& call, bool exists) {
  if (!exists) {
    call.Refuse(MPI_T_ERR_INVALID_HANDLE, "the registration is null, or was freed");
  }
}

// Null: the call has failed.
const EventData* Find(ToolCall& call, MPI_T_event_instance instance) {
  const EventData* const found = EventHub::Find(instance);
  if (found == nullptr) {
    call.Refuse(MPI_T_ERR_INVALID_HANDLE,
                "the event is not the one that this thread's callback was called with");
  }
  return call.ok() ? found : nullptr;
}

}  // namespace

void FreeEventRegistrations() { Hub().FreeAll(); }

// ---- Sources ------------------------------------------------------------------------------------

FERRY_MPI_CALL(int, MPI_T_source_get_num, (int* num_sources)) {
  ToolCall call(FERRY_MPI_NAME);
  call.Need(num_sources, "num_sources");
  return call.Then([&] { *num_sources = static_cast<int>(kSourceCount); });
}

FERRY_MPI_CALL(int, MPI_T_source_get_info,
               (int source_index, char* name, int* name_len, char* desc, int* desc_len,
                MPI_T_source_order* ordering, MPI_Count* ticks_per_second, MPI_Count* max_ticks,
                MPI_Info* info)) {
  ToolCall call(FERRY_MPI_NAME);
  call.NeedIndex(source_index, kSourceCount, kSources);
  PutInfo(call, info);
  return call.Then([&] {
    PutText("rank", name, name_len);
    PutText("This process. The times of its events are of its node's monotonic clock, in ns.", desc,
            desc_len);
    PutResult(ordering, MPI_T_SOURCE_ORDERED);
    PutResult(ticks_per_second, kTicksPerSecond);
    PutResult(max_ticks, MPI_Count{INT64_MAX});
  });
}

FERRY_MPI_CALL(int, MPI_T_source_get_timestamp, (int source_index, MPI_Count* timestamp)) {
  ToolCall call(FERRY_MPI_NAME);
  call.NeedIndex(source_index, kSourceCount, kSources);
  call.Need(timestamp, "timestamp");
  return call.Then([&] { *timestamp = static_cast<MPI_Count>(MonotonicNs()); });
}

// ---- Types of events ----------------------------------------------------------------------------

FERRY_MPI_CALL(int, MPI_T_event_get_num, (int* num_events)) {
  ToolCall call(FERRY_MPI_NAME);
  call.Need(num_events, "num_events");
  return call.Then([&] { *num_events = kEventKinds; });
}

// The arrays get as many elements as they have room for; *num_elements becomes the number of all.
FERRY_MPI_CALL(int, MPI_T_event_get_info,
               (int event_index, char* name, int* name_len, int* verbosity,
                MPI_Datatype array_of_datatypes[], MPI_Aint array_of_displacements[],
                int* num_elements, MPI_T_enum* enumtype, MPI_Info* info, char* desc, int* desc_len,
                int* bind)) {
  ToolCall call(FERRY_MPI_NAME);
  call.NeedIndex(event_index, EventTypes().size(), kEvents);
  if (num_elements != nullptr && *num_elements < 0) {
    call.Refuse(MPI_T_ERR_INVALID, "num_elements is negative");
  }
  PutInfo(call, info);
  return call.Then([&] {
    const EventType& type = TypeAt(event_index);
    PutText(type.name, name, name_len);
    PutText(type.help, desc, desc_len);
    PutResult(verbosity, static_cast<int>(MPI_T_VERBOSITY_USER_DETAIL));
    PutResult(enumtype, ElementsOf(static_cast<EventKind>(event_index)).handle());
    PutResult(bind, static_cast<int>(MPI_T_BIND_NO_OBJECT));
    if (num_elements == nullptr) {
      return;
    }
    const size_t room = std::min(static_cast<size_t>(*num_elements), type.elements.size());
    for (size_t i = 0; i < room; ++i) {
      if (array_of_datatypes != nullptr) {
        array_of_datatypes[i] = type.elements[i].datatype();
      }
      if (array_of_displacements != nullptr) {
        array_of_displacements[i] = static_cast<MPI_Aint>(type.DisplacementOf(i));
      }
    }
    *num_elements = static_cast<int>(type.elements.size());
  });
}

FERRY_MPI_CALL(int, MPI_T_event_get_index, (const char* name, int* event_index)) {
  ToolCall call(FERRY_MPI_NAME);
  call.Need(name, "name");
  call.Need(event_index, "event_index");
  return call.Then([&]() -> Failure {
    const auto& all = EventTypes();
    const auto found = std::find_if(all.begin(), all.end(), [name](const EventType& each) {
      return std::string_view(each.name) == name;
    });
    if (found == all.end()) {
      return {MPI_T_ERR_INVALID_NAME, "there is no event \"" + std::string(name) + "\""};
    }
    *event_index = static_cast<int>(found - all.begin());
    return {};
  });
}

// Events belong to no object, so `obj_handle` means nothing.
FERRY_MPI_CALL(int, MPI_T_event_handle_alloc,
               (int event_index, void*, MPI_Info info,
                MPI_T_event_registration* event_registration)) {
  ToolCall call(FERRY_MPI_NAME);
  call.NeedIndex(event_index, EventTypes().size(), kEvents);
  call.Need(event_registration, "event_registration");
  NeedInfo(call, info);
  return call.Then(
      [&] { *event_registration = Hub().Allocate(static_cast<EventKind>(event_index)); });
}

// ---- Registrations ------------------------------------------------------------------------------

namespace {

int SetInfo(const char* name, MPI_T_event_registration registration, MPI_T_cb_safety level,
            MPI_Info info) {
  ToolCall call(name);
  NeedRegistration(call, Hub().Exists(registration));
  NeedLevel(call, level);
  NeedInfo(call, info);
  return call.result();
}

int GetInfo(const char* name, MPI_T_event_registration registration, MPI_T_cb_safety level,
            MPI_Info* info) {
  ToolCall call(name);
  NeedRegistration(call, Hub().Exists(registration));
  NeedLevel(call, level);
  call.Need(info, "info_used");
  PutInfo(call, info);
  return call.result();
}

}  // namespace

FERRY_MPI_CALL(int, MPI_T_event_handle_set_info,
               (MPI_T_event_registration event_registration, MPI_Info info)) {
  return SetInfo(FERRY_MPI_NAME, event_registration, MPI_T_CB_REQUIRE_NONE, info);
}

FERRY_MPI_CALL(int, MPI_T_event_handle_get_info,
               (MPI_T_event_registration event_registration, MPI_Info* info_used)) {
  return GetInfo(FERRY_MPI_NAME, event_registration, MPI_T_CB_REQUIRE_NONE, info_used);
}

FERRY_MPI_CALL(int, MPI_T_event_callback_set_info,
               (MPI_T_event_registration event_registration, MPI_T_cb_safety cb_safety,
                MPI_Info info)) {
  return SetInfo(FERRY_MPI_NAME, event_registration, cb_safety, info);
}

FERRY_MPI_CALL(int, MPI_T_event_callback_get_info,
               (MPI_T_event_registration event_registration, MPI_T_cb_safety cb_safety,
                MPI_Info* info_used)) {
  return GetInfo(FERRY_MPI_NAME, event_registration, cb_safety, info_used);
}

FERRY_MPI_CALL(int, MPI_T_event_handle_free,
               (MPI_T_event_registration event_registration, void* user_data,
                MPI_T_event_free_cb_function free_cb_function)) {
  {
    ToolCall call(FERRY_MPI_NAME);
    NeedRegistration(call, Hub().Exists(event_registration));
    if (!call.ok()) {
      return call.result();
    }
  }
  if (Hub().Free(event_registration, free_cb_function, user_data)) {
    return MPI_SUCCESS;
  }
  ToolCall call(FERRY_MPI_NAME);
  NeedRegistration(call, false);  // another thread was quicker
  return call.result();
}

FERRY_MPI_CALL(int, MPI_T_event_register_callback,
               (MPI_T_event_registration event_registration, MPI_T_cb_safety cb_safety,
                MPI_Info info, void* user_data, MPI_T_event_cb_function event_cb_function)) {
  ToolCall call(FERRY_MPI_NAME);
  NeedRegistration(call, Hub().Exists(event_registration));
  NeedLevel(call, cb_safety);
  NeedInfo(call, info);
  call.Need(reinterpret_cast<const void*>(event_cb_function), "event_cb_function");
  if (call.ok()) {
    NeedRegistration(call,
                     Hub().Register(event_registration, cb_safety, event_cb_function, user_data));
  }
  return call.result();
}

// A null handler takes the last one away.
FERRY_MPI_CALL(int, MPI_T_event_set_dropped_handler,
               (MPI_T_event_registration event_registration,
                MPI_T_event_dropped_cb_function dropped_cb_function)) {
  ToolCall call(FERRY_MPI_NAME);
  if (call.ok()) {
    NeedRegistration(call, Hub().SetDroppedHandler(event_registration, dropped_cb_function));
  }
  return call.result();
}

// ---- Events, in callbacks -----------------------------------------------------------------------

FERRY_MPI_CALL(int, MPI_T_event_read,
               (MPI_T_event_instance event_instance, int element_index, void* buffer)) {
  ToolCall call(FERRY_MPI_NAME);
  const EventData* const event = Find(call, event_instance);
  if (event != nullptr) {
    call.NeedIndex(element_index, event->type().elements.size(), "elements of the event");
  }
  call.Need(buffer, "buffer");
  return call.Then([&] { event->ReadElement(static_cast<size_t>(element_index), buffer); });
}

FERRY_MPI_CALL(int, MPI_T_event_copy, (MPI_T_event_instance event_instance, void* buffer)) {
  ToolCall call(FERRY_MPI_NAME);
  const EventData* const event = Find(call, event_instance);
  call.Need(buffer, "buffer");
  return call.Then([&] { event->CopyTo(buffer); });
}

FERRY_MPI_CALL(int, MPI_T_event_get_timestamp,
               (MPI_T_event_instance event_instance, MPI_Count* event_timestamp)) {
  ToolCall call(FERRY_MPI_NAME);
  const EventData* const event = Find(call, event_instance);
  call.Need(event_timestamp, "event_timestamp");
  return call.Then([&] { *event_timestamp = static_cast<MPI_Count>(event->time_ns); });
}

FERRY_MPI_CALL(int, MPI_T_event_get_source,
               (MPI_T_event_instance event_instance, int* source_index)) {
  ToolCall call(FERRY_MPI_NAME);
  (void)Find(call, event_instance);
  call.Need(source_index, "source_index");
  return call.Then([&] { *source_index = 0; });
}

}  // namespace ferry::mpi
