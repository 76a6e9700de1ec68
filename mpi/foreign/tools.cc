// Functions of the tool interface that have callbacks, or handles behind untyped pointers.
#include <map>
#include <mutex>
#include <new>

#include "mpi/foreign/convert.h"
#include "mpi/foreign/library.h"

namespace ferry::foreign {
namespace {

// The handle behind a pointer to the object that a variable belongs to; of what kind it is, the
// variable says. Null: none.
void* OurObject(int bind, void* theirs) {
  if (theirs == nullptr) {
    return nullptr;
  }
  const TheirHandle handle = *static_cast<const TheirHandle*>(theirs);
  switch (bind) {
    case MPI_T_BIND_MPI_COMM:
      return Ours<MPI_Comm>(handle);
    case MPI_T_BIND_MPI_DATATYPE:
      return Ours<MPI_Datatype>(handle);
    case MPI_T_BIND_MPI_ERRHANDLER:
      return Ours<MPI_Errhandler>(handle);
    case MPI_T_BIND_MPI_FILE:
      return OurFile(*static_cast<File*>(theirs));
    case MPI_T_BIND_MPI_GROUP:
      return Ours<MPI_Group>(handle);
    case MPI_T_BIND_MPI_OP:
      return Ours<MPI_Op>(handle);
    case MPI_T_BIND_MPI_REQUEST:
      return Ours<MPI_Request>(handle);
    case MPI_T_BIND_MPI_WIN:
      return Ours<MPI_Win>(handle);
    case MPI_T_BIND_MPI_MESSAGE:
      return Ours<MPI_Message>(handle);
    case MPI_T_BIND_MPI_INFO:
      return Ours<MPI_Info>(handle);
    case MPI_T_BIND_MPI_SESSION:
      return Ours<MPI_Session>(handle);
    default:
      return nullptr;
  }
}

// That handle, as a pointer to it.
class BoundObject {
 public:
  BoundObject(int bind, void* theirs) : ours_(OurObject(bind, theirs)) {}
  void* get() { return ours_ == nullptr ? nullptr : &ours_; }

 private:
  void* ours_;
};

int CvarBind(int index) {
  int bind = MPI_T_BIND_NO_OBJECT;
  abi.T_cvar_get_info(index, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, &bind,
                      nullptr);
  return bind;
}

int PvarBind(int index) {
  int bind = MPI_T_BIND_NO_OBJECT;
  abi.T_pvar_get_info(index, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr,
                      &bind, nullptr, nullptr, nullptr);
  return bind;
}

int EventBind(int index) {
  int bind = MPI_T_BIND_NO_OBJECT;
  abi.T_event_get_info(index, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr,
                       nullptr, nullptr, nullptr, &bind);
  return bind;
}

// ---- Callbacks of events ------------------------------------------------------------------------

using EventFunction = void(MPI_T_event_instance, MPI_T_event_registration, int, void*);
using FreeFunction = void(MPI_T_event_registration, int, void*);
using DroppedFunction = void(MPI_Count, MPI_T_event_registration, int, int, void*);

// Ours gets this as the user's data: the function of the program, and its data. Those of
// events live as long as the process, since a callback may run while another takes its place.
template <typename Function>
struct Callback {
  Function* function;
  void* user_data;
};

std::mutex mutex;  // guards what follows
std::map<MPI_T_event_registration, DroppedFunction*>& dropped =
    *new std::map<MPI_T_event_registration, DroppedFunction*>();

void OnEvent(MPI_T_event_instance instance, MPI_T_event_registration registration,
             MPI_T_cb_safety safety, void* user_data) {
  const auto& callback = *static_cast<const Callback<EventFunction>*>(user_data);
  callback.function(instance, registration, Theirs(kCbSafeties, safety), callback.user_data);
}

void OnFree(MPI_T_event_registration registration, MPI_T_cb_safety safety, void* user_data) {
  const auto* const callback = static_cast<const Callback<FreeFunction>*>(user_data);
  callback->function(registration, Theirs(kCbSafeties, safety), callback->user_data);
  delete callback;
}

void OnDropped(MPI_Count count, MPI_T_event_registration registration, int source,
               MPI_T_cb_safety safety, void* user_data) {
  DroppedFunction* function = nullptr;
  {
    const std::lock_guard lock(mutex);
    function = dropped[registration];
  }
  if (function != nullptr) {
    const auto* const callback = static_cast<const Callback<EventFunction>*>(user_data);
    function(count, registration, source, Theirs(kCbSafeties, safety),
             callback == nullptr ? nullptr : callback->user_data);
  }
}

}  // namespace

FERRY_FOREIGN(int, T_cvar_handle_alloc,
              (int index, void* object, MPI_T_cvar_handle* handle, int* count)) {
  BoundObject ours(CvarBind(index), object);
  return TheirCode(abi.T_cvar_handle_alloc(index, ours.get(), handle, count));
}

FERRY_FOREIGN(int, T_pvar_handle_alloc,
              (MPI_T_pvar_session session, int index, void* object, MPI_T_pvar_handle* handle,
               int* count)) {
  BoundObject ours(PvarBind(index), object);
  return TheirCode(abi.T_pvar_handle_alloc(session, index, ours.get(), handle, count));
}

FERRY_FOREIGN(int, T_event_handle_alloc,
              (int index, void* object, TheirHandle info, MPI_T_event_registration* registration)) {
  BoundObject ours(EventBind(index), object);
  return TheirCode(abi.T_event_handle_alloc(index, ours.get(), Ours<MPI_Info>(info), registration));
}

FERRY_FOREIGN(int, T_event_get_info,
              (int index, char* name, int* name_len, int* verbosity, TheirHandle datatypes[],
               MPI_Aint displacements[], int* num_elements, MPI_T_enum* enumtype, TheirHandle* info,
               char* desc, int* desc_len, int* bind)) {
  const int room = num_elements == nullptr ? 0 : *num_elements;
  const Elements<MPI_Datatype> our_datatypes(datatypes, room);
  HandleOut<MPI_Info> our_info(info);
  const int code =
      abi.T_event_get_info(index, name, name_len, verbosity, our_datatypes.get(), displacements,
                           num_elements, enumtype, our_info.get(), desc, desc_len, bind);
  for (int i = 0; code == MPI_SUCCESS && datatypes != nullptr && i < std::min(room, *num_elements);
       ++i) {
    datatypes[i] = Theirs(our_datatypes.get()[i]);
  }
  our_info.Give();
  Translate(code, verbosity, [](int number) { return Theirs(kVerbosities, number); });
  Translate(code, bind, [](int number) { return Theirs(kBinds, number); });
  return TheirCode(code);
}

FERRY_FOREIGN(int, T_event_register_callback,
              (MPI_T_event_registration registration, int safety, TheirHandle info, void* user_data,
               EventFunction* function)) {
  auto* const callback = new (std::nothrow) Callback<EventFunction>{function, user_data};
  if (callback == nullptr) {
    return TheirCode(MPI_T_ERR_MEMORY);
  }
  const int code = abi.T_event_register_callback(
      registration, static_cast<MPI_T_cb_safety>(Ours(kCbSafeties, safety)), Ours<MPI_Info>(info),
      callback, function == nullptr ? nullptr : OnEvent);
  if (code != MPI_SUCCESS) {
    delete callback;
  }
  return TheirCode(code);
}

FERRY_FOREIGN(int, T_event_handle_free,
              (MPI_T_event_registration registration, void* user_data, FreeFunction* function)) {
  if (function == nullptr) {
    return TheirCode(abi.T_event_handle_free(registration, user_data, nullptr));
  }
  auto* const callback = new (std::nothrow) Callback<FreeFunction>{function, user_data};
  if (callback == nullptr) {
    return TheirCode(MPI_T_ERR_MEMORY);
  }
  const int code = abi.T_event_handle_free(registration, callback, OnFree);
  if (code != MPI_SUCCESS) {
    delete callback;
  }
  return TheirCode(code);
}

FERRY_FOREIGN(int, T_event_set_dropped_handler,
              (MPI_T_event_registration registration, DroppedFunction* function)) {
  {
    const std::lock_guard lock(mutex);
    dropped[registration] = function;
  }
  return TheirCode(
      abi.T_event_set_dropped_handler(registration, function == nullptr ? nullptr : OnDropped));
}

}  // namespace ferry::foreign
