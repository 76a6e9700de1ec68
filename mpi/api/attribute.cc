// Attributes of communicators, datatypes and windows (MPI 5.0, section 7.7).
#include "mpi/base/attribute.h"

#include <atomic>
#include <string>
#include <type_traits>

#include "mpi/api/call.h"
#include "mpi/api/function.h"
#include "mpi/base/error_codes.h"
#include "mpi/comm/comm.h"
#include "mpi/comm/creation.h"
#include "mpi/datatype/datatype.h"
#include "mpi/init/process.h"
#include "mpi/rma/window.h"

namespace ferry::mpi {
namespace {

constexpr AttributeKind kComm = AttributeKind::kCommunicator;
constexpr AttributeKind kType = AttributeKind::kDatatype;
constexpr AttributeKind kWin = AttributeKind::kWindow;

// ---- The attributes that every communicator has (MPI 5.0, section 9.1.2) ------------------------
//
// The standard asks for them on MPI_COMM_WORLD; libraries that are handed a duplicate look for them
// there.

int UniverseSize(const config::Options& options) {
  return options.universe_size != 0 ? static_cast<int>(options.universe_size)
                                    : Process::world().size();
}

// Returns true for a predefined attribute of communicators or of windows.
bool IsPredefinedAttribute(int keyval) {
  return (keyval >= MPI_TAG_UB && keyval <= MPI_UNIVERSE_SIZE) ||
         (keyval >= MPI_WIN_BASE && keyval <= MPI_WIN_MODEL);
}

// *value points to an int that stays where it is. False: it is not set (MPI_APPNUM, in a process
// that no launcher started), or windows have it. MPI_WTIME_IS_GLOBAL is true where all processes of
// the communicator are of one node, which has one clock.
bool PredefinedAttribute(const Comm& comm, int keyval, void** value) {
  static int tag_max = kTagMax;
  static int every_process = MPI_ANY_SOURCE;
  static int no_process = MPI_PROC_NULL;
  static int no = 0;
  static int yes = 1;
  static int program = static_cast<int>(front_end->options().app);
  static int universe_size = UniverseSize(front_end->options());
  // Programs read it as a plain int; several threads may ask at a time.
  static std::atomic<int> last_used_code{0};
  static_assert(sizeof(last_used_code) == sizeof(int));
  switch (keyval) {
    case MPI_TAG_UB:
      *value = &tag_max;
      return true;
    case MPI_IO:
      *value = &every_process;
      return true;
    case MPI_HOST:
      *value = &no_process;
      return true;
    case MPI_WTIME_IS_GLOBAL:
      *value = HasSeveralNodes(comm) ? &no : &yes;
      return true;
    case MPI_UNIVERSE_SIZE:
      *value = &universe_size;
      return true;
    case MPI_APPNUM:
      *value = &program;
      return front_end->options().app_size != 0;
    case MPI_LASTUSEDCODE:
      last_used_code.store(ProcessErrorCodes().LastUsed(), std::memory_order_relaxed);
      *value = &last_used_code;
      return true;
    default:
      return false;
  }
}

// ---- Those of programs --------------------------------------------------------------------------

void RefusePredefined(Call& call, int keyval) {
  if (IsPredefinedAttribute(keyval)) {
    call.Refuse(MPI_ERR_KEYVAL, "keyval " + std::to_string(keyval) + " is predefined");
  }
}

int CreateKeyval(Call call, AttributeKind kind, AnyFunction copy, AnyFunction remove, int* keyval,
                 void* extra_state) {
  call.NeedRunning();
  call.Need(keyval, "keyval");
  return call.Then([&] {
    return ProcessKeyvals().Create(kind, CallerOf(kind), copy, remove, extra_state, keyval);
  });
}

int FreeKeyval(Call call, AttributeKind kind, int* keyval) {
  call.NeedRunning();
  call.Need(keyval, "keyval");
  FERRY_RETURN_ERROR(call.result());
  RefusePredefined(call, *keyval);
  if (call.ok()) {
    call.Refuse(ProcessKeyvals().Free(kind, *keyval));
  }
  return call.Then([&] { *keyval = MPI_KEYVAL_INVALID; });
}

// The attributes that an object caches, and how its predefined attributes are found.
AttributeSet& AttributesOf(Comm* comm) { return comm->attributes(); }
AttributeSet& AttributesOf(Datatype* datatype) { return datatype->attributes(); }
AttributeSet& AttributesOf(Win* win) { return win->attributes(); }
constexpr AttributeKind KindOf(MPI_Comm) { return kComm; }
constexpr AttributeKind KindOf(MPI_Datatype) { return kType; }
constexpr AttributeKind KindOf(MPI_Win) { return kWin; }

template <typename Handle>
int SetAttribute(Call call, Handle handle, int keyval, void* value) {
  auto* const object = call.Find(handle);
  RefusePredefined(call, keyval);
  Ref<Keyval> key;
  if (call.ok()) {
    call.Refuse(ProcessKeyvals().Find(KindOf(handle), keyval, &key));
  }
  return call.Then([&] { return AttributesOf(object).Set(handle, std::move(key), value); });
}

template <typename Handle>
int GetAttribute(Call call, Handle handle, int keyval, void* value, int* flag) {
  auto* const object = call.Find(handle);
  call.Need(value, "attribute_val", flag, "flag");
  FERRY_RETURN_ERROR(call.result());
  auto* const out = static_cast<void**>(value);
  if constexpr (std::is_same_v<Handle, MPI_Comm>) {
    if (IsPredefinedAttribute(keyval)) {
      *flag = PredefinedAttribute(*object, keyval, out) ? 1 : 0;
      return call.result();
    }
  }
  if constexpr (std::is_same_v<Handle, MPI_Win>) {
    if (IsPredefinedAttribute(keyval)) {
      *flag = object->PredefinedAttribute(keyval, out) ? 1 : 0;
      return call.result();
    }
  }
  *flag = AttributesOf(object).Get(keyval, out) ? 1 : 0;
  if (*flag == 0) {
    Ref<Keyval> key;
    call.Refuse(ProcessKeyvals().Find(KindOf(handle), keyval, &key));
  }
  return call.result();
}

template <typename Handle>
int DeleteAttribute(Call call, Handle handle, int keyval) {
  auto* const object = call.Find(handle);
  RefusePredefined(call, keyval);
  return call.Then([&] { return AttributesOf(object).Delete(handle, keyval); });
}

template <typename Function>
AnyFunction Any(Function* function) {
  return reinterpret_cast<AnyFunction>(function);
}

}  // namespace

// ---- The functions ------------------------------------------------------------------------------

// NOLINTBEGIN(bugprone-macro-parentheses): Copy and Delete are types.
#define FERRY_KEYVALS(create, free, kind, Copy, Delete)                                         \
  FERRY_MPI_CALL(int, create, (Copy * copy, Delete * remove, int* keyval, void* extra_state)) { \
    return CreateKeyval(FERRY_MPI_NAME, kind, Any(copy), Any(remove), keyval, extra_state);     \
  }                                                                                             \
  FERRY_MPI_CALL(int, free, (int* keyval)) { return FreeKeyval(FERRY_MPI_NAME, kind, keyval); }
// NOLINTEND(bugprone-macro-parentheses)

#define FERRY_ATTRIBUTES(set, get, remove, Handle)                                \
  FERRY_MPI_CALL(int, set, (Handle object, int keyval, void* value)) {            \
    return SetAttribute(FERRY_MPI_NAME, object, keyval, value);                   \
  }                                                                               \
  FERRY_MPI_CALL(int, get, (Handle object, int keyval, void* value, int* flag)) { \
    return GetAttribute(FERRY_MPI_NAME, object, keyval, value, flag);             \
  }                                                                               \
  FERRY_MPI_CALL(int, remove, (Handle object, int keyval)) {                      \
    return DeleteAttribute(FERRY_MPI_NAME, object, keyval);                       \
  }

FERRY_KEYVALS(MPI_Comm_create_keyval, MPI_Comm_free_keyval, kComm, MPI_Comm_copy_attr_function,
              MPI_Comm_delete_attr_function)
FERRY_ATTRIBUTES(MPI_Comm_set_attr, MPI_Comm_get_attr, MPI_Comm_delete_attr, MPI_Comm)

// The deprecated names of these.
FERRY_KEYVALS(MPI_Keyval_create, MPI_Keyval_free, kComm, MPI_Copy_function, MPI_Delete_function)
FERRY_ATTRIBUTES(MPI_Attr_put, MPI_Attr_get, MPI_Attr_delete, MPI_Comm)

FERRY_KEYVALS(MPI_Type_create_keyval, MPI_Type_free_keyval, kType, MPI_Type_copy_attr_function,
              MPI_Type_delete_attr_function)
FERRY_ATTRIBUTES(MPI_Type_set_attr, MPI_Type_get_attr, MPI_Type_delete_attr, MPI_Datatype)

FERRY_KEYVALS(MPI_Win_create_keyval, MPI_Win_free_keyval, kWin, MPI_Win_copy_attr_function,
              MPI_Win_delete_attr_function)
FERRY_ATTRIBUTES(MPI_Win_set_attr, MPI_Win_get_attr, MPI_Win_delete_attr, MPI_Win)

}  // namespace ferry::mpi
