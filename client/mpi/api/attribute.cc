// Attributes of communicators and datatypes, and the keys of windows' too (MPI 5.0, section 7.7).
#include "client/mpi/base/attribute.h"

#include <atomic>
#include <string>
#include <type_traits>

#include "client/mpi/api/call.h"
#include "client/mpi/api/function.h"
#include "client/mpi/base/error_codes.h"
#include "client/mpi/comm/comm.h"
#include "client/mpi/datatype/datatype.h"
#include "client/mpi/runtime/process.h"

namespace ferry::mpi {
namespace {

constexpr AttributeKind kComm = AttributeKind::kCommunicator;
constexpr AttributeKind kType = AttributeKind::kDatatype;

// ---- The attributes that every communicator has (MPI 5.0, section 9.1.2) ------------------------
//
// The standard asks for them on MPI_COMM_WORLD; libraries that are handed a duplicate look for them
// there.

// Whether MPI_Wtime counts from the same moment on all: it does on all processes of a node.
bool HasOneClock(const Comm& comm) {
  const int node = front_end->NodeOf(front_end->rank());
  for (const RankSet* group : {&comm.group(), &comm.peers()}) {
    for (int rank = 0; rank < group->size(); ++rank) {
      if (front_end->NodeOf(static_cast<uint32_t>(group->WorldRank(rank))) != node) {
        return false;
      }
    }
  }
  return true;
}

int UniverseSize(const config::Options& options) {
  return options.universe_size != 0 ? static_cast<int>(options.universe_size)
                                    : Process::world().size();
}

// Whether it is one of communicators or of windows.
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
      *value = HasOneClock(comm) ? &yes : &no;
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

int CreateKeyval(const char* name, AttributeKind kind, AnyFunction copy, AnyFunction remove,
                 int* keyval, void* extra_state) {
  Call call(name);
  call.NeedRunning();
  call.Need(keyval, "keyval");
  return call.ok() ? call.Return(ProcessKeyvals().Create(kind, CallerOf(kind), copy, remove,
                                                         extra_state, keyval))
                   : call.result();
}

int FreeKeyval(const char* name, AttributeKind kind, int* keyval) {
  Call call(name);
  call.NeedRunning();
  call.Need(keyval, "keyval");
  if (!call.ok()) {
    return call.result();
  }
  RefusePredefined(call, *keyval);
  if (call.ok()) {
    call.Refuse(ProcessKeyvals().Free(kind, *keyval));
  }
  if (call.ok()) {
    *keyval = MPI_KEYVAL_INVALID;
  }
  return call.result();
}

// The attributes that an object caches, and how its predefined attributes are found.
AttributeSet& AttributesOf(Comm* comm) { return comm->attributes(); }
AttributeSet& AttributesOf(Datatype* datatype) { return datatype->attributes(); }
constexpr AttributeKind KindOf(MPI_Comm) { return kComm; }
constexpr AttributeKind KindOf(MPI_Datatype) { return kType; }

template <typename Handle>
int SetAttribute(const char* name, Handle handle, int keyval, void* value) {
  Call call(name);
  auto* const object = call.Find(handle);
  RefusePredefined(call, keyval);
  Ref<Keyval> key;
  if (call.ok()) {
    call.Refuse(ProcessKeyvals().Find(KindOf(handle), keyval, &key));
  }
  return call.ok() ? call.Return(AttributesOf(object).Set(handle, std::move(key), value))
                   : call.result();
}

template <typename Handle>
int GetAttribute(const char* name, Handle handle, int keyval, void* value, int* flag) {
  Call call(name);
  auto* const object = call.Find(handle);
  call.Need(value, "attribute_val");
  call.Need(flag, "flag");
  if (!call.ok()) {
    return call.result();
  }
  auto* const out = static_cast<void**>(value);
  if constexpr (std::is_same_v<Handle, MPI_Comm>) {
    if (IsPredefinedAttribute(keyval)) {
      *flag = PredefinedAttribute(*object, keyval, out) ? 1 : 0;
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
int DeleteAttribute(const char* name, Handle handle, int keyval) {
  Call call(name);
  auto* const object = call.Find(handle);
  RefusePredefined(call, keyval);
  return call.ok() ? call.Return(AttributesOf(object).Delete(handle, keyval)) : call.result();
}

template <typename Function>
AnyFunction Any(Function* function) {
  return reinterpret_cast<AnyFunction>(function);
}

}  // namespace
}  // namespace ferry::mpi

using namespace ferry::mpi;  // NOLINT: the functions below are of no namespace

// ---- Communicators ------------------------------------------------------------------------------

FERRY_MPI_CALL(int, Comm_create_keyval,
               (MPI_Comm_copy_attr_function * copy, MPI_Comm_delete_attr_function* remove,
                int* keyval, void* extra_state)) {
  return CreateKeyval("MPI_Comm_create_keyval", kComm, Any(copy), Any(remove), keyval, extra_state);
}

FERRY_MPI_CALL(int, Comm_free_keyval, (int* keyval)) {
  return FreeKeyval("MPI_Comm_free_keyval", kComm, keyval);
}

FERRY_MPI_CALL(int, Comm_set_attr, (MPI_Comm comm, int keyval, void* value)) {
  return SetAttribute("MPI_Comm_set_attr", comm, keyval, value);
}

FERRY_MPI_CALL(int, Comm_get_attr, (MPI_Comm comm, int keyval, void* value, int* flag)) {
  return GetAttribute("MPI_Comm_get_attr", comm, keyval, value, flag);
}

FERRY_MPI_CALL(int, Comm_delete_attr, (MPI_Comm comm, int keyval)) {
  return DeleteAttribute("MPI_Comm_delete_attr", comm, keyval);
}

// ---- Their deprecated names ---------------------------------------------------------------------

FERRY_MPI_CALL(int, Keyval_create,
               (MPI_Copy_function * copy, MPI_Delete_function* remove, int* keyval,
                void* extra_state)) {
  return CreateKeyval("MPI_Keyval_create", kComm, Any(copy), Any(remove), keyval, extra_state);
}

FERRY_MPI_CALL(int, Keyval_free, (int* keyval)) {
  return FreeKeyval("MPI_Keyval_free", kComm, keyval);
}

FERRY_MPI_CALL(int, Attr_put, (MPI_Comm comm, int keyval, void* value)) {
  return SetAttribute("MPI_Attr_put", comm, keyval, value);
}

FERRY_MPI_CALL(int, Attr_get, (MPI_Comm comm, int keyval, void* value, int* flag)) {
  return GetAttribute("MPI_Attr_get", comm, keyval, value, flag);
}

FERRY_MPI_CALL(int, Attr_delete, (MPI_Comm comm, int keyval)) {
  return DeleteAttribute("MPI_Attr_delete", comm, keyval);
}

// ---- Datatypes ----------------------------------------------------------------------------------

FERRY_MPI_CALL(int, Type_create_keyval,
               (MPI_Type_copy_attr_function * copy, MPI_Type_delete_attr_function* remove,
                int* keyval, void* extra_state)) {
  return CreateKeyval("MPI_Type_create_keyval", kType, Any(copy), Any(remove), keyval, extra_state);
}

FERRY_MPI_CALL(int, Type_free_keyval, (int* keyval)) {
  return FreeKeyval("MPI_Type_free_keyval", kType, keyval);
}

FERRY_MPI_CALL(int, Type_set_attr, (MPI_Datatype datatype, int keyval, void* value)) {
  return SetAttribute("MPI_Type_set_attr", datatype, keyval, value);
}

FERRY_MPI_CALL(int, Type_get_attr, (MPI_Datatype datatype, int keyval, void* value, int* flag)) {
  return GetAttribute("MPI_Type_get_attr", datatype, keyval, value, flag);
}

FERRY_MPI_CALL(int, Type_delete_attr, (MPI_Datatype datatype, int keyval)) {
  return DeleteAttribute("MPI_Type_delete_attr", datatype, keyval);
}

// ---- Windows: their keys can be made, though there are no windows yet --------------------------

FERRY_MPI_CALL(int, Win_create_keyval,
               (MPI_Win_copy_attr_function * copy, MPI_Win_delete_attr_function* remove,
                int* keyval, void* extra_state)) {
  return CreateKeyval("MPI_Win_create_keyval", AttributeKind::kWindow, Any(copy), Any(remove),
                      keyval, extra_state);
}

FERRY_MPI_CALL(int, Win_free_keyval, (int* keyval)) {
  return FreeKeyval("MPI_Win_free_keyval", AttributeKind::kWindow, keyval);
}
