// Names that MPICH's libraries for Fortran (libmpichfort.so.12, libmpifort.so.12) and C++
// (libmpichcxx.so.12, libmpicxx.so.12) call in libmpi.so.12 beside MPI itself. With these few
// functions they run on Ferry as they are: handles, statuses and sentinels are the same in MPICH's
// C and Fortran, so that nearly all that they do is to call C. Libraries of Ferry's own in their
// place would need 4,873 names, and modules' data as one compiler of one version lays them out.
//
// Any thread; nothing here waits.
#include <cstdint>
#include <new>

#include "mpi/foreign/callbacks.h"
#include "mpi/foreign/convert.h"
#include "mpi/foreign/library.h"
#include "mpi/fortran/attribute_values.h"

namespace ferry::foreign {

// ---- Attributes ---------------------------------------------------------------------------------

namespace {

// The kind of an attribute's value, or the one that is wanted.
enum class ValueKind : int { kPointer = 0, kAddressInteger = 1, kInteger = 3 };

// They take and give the value itself, which a Fortran program has as an integer.
using CopyProxy = int(Copy* function, TheirHandle object, int keyval, void* extra_state,
                      ValueKind kind, void* value, void** new_value, int* flag);
using DeleteProxy = int(Delete* function, TheirHandle object, int keyval, ValueKind kind,
                        void* value, void* extra_state);

// The extra state of a keyval whose functions are not C's. Lives as long as the keyval's.
struct Proxied {
  CopyProxy* copy_proxy;
  DeleteProxy* delete_proxy;
  Keyval theirs;
};

struct Value {
  explicit Value(void* in_c)
      : kind(fortran::AllPlaces().Has(in_c) ? ValueKind::kAddressInteger : ValueKind::kPointer),
        word(reinterpret_cast<void*>(fortran::FromC(in_c))) {}
  const ValueKind kind;
  void* const word;
};

int CopyByProxy(TheirHandle object, int keyval, void* extra_state, void* in, void* out, int* flag) {
  const auto& proxied = *static_cast<const Proxied*>(extra_state);
  const Value value(in);
  void* copied = nullptr;
  *flag = 0;
  const int code =
      proxied.copy_proxy(proxied.theirs.copy, object, keyval, proxied.theirs.extra_state,
                         value.kind, value.word, &copied, flag);
  if (code == MPI_SUCCESS && *flag != 0) {
    *static_cast<void**>(out) = value.kind == ValueKind::kPointer
                                    ? copied
                                    : fortran::AllPlaces().Of(reinterpret_cast<MPI_Aint>(copied));
  }
  return code;
}

int DeleteByProxy(TheirHandle object, int keyval, void* in, void* extra_state) {
  const auto& proxied = *static_cast<const Proxied*>(extra_state);
  const Value value(in);
  return proxied.delete_proxy(proxied.theirs.remove, object, keyval, value.kind, value.word,
                              proxied.theirs.extra_state);
}

// Predefined keyvals have numbers of their own in Fortran: C's, which are odd, and 1. Of
// communicators they begin with 0x644, of windows with 0x660.
int KeyvalInC(int keyval) {
  const int kind = keyval >> 20;
  return (kind == 0x644 || kind == 0x660) && keyval % 2 == 0 ? keyval - 1 : keyval;
}

// get(object, keyval, value, flag) is what C programs of their interface call.
int Get(int (*get)(TheirHandle, int, void*, int*), TheirHandle object, int keyval, void* value,
        int* flag, ValueKind wanted) {
  if (wanted == ValueKind::kPointer) {
    return get(object, keyval, value, flag);
  }
  const int in_c = KeyvalInC(keyval);
  void* found = nullptr;
  const int code = get(object, in_c, &found, flag);
  if (code == MPI_SUCCESS && *flag != 0) {
    *static_cast<MPI_Aint*>(value) = fortran::FromC(Ours(kKeyvals, in_c), found);
  }
  return code;
}

template <typename Handle>
int Set(int (*set)(Handle, int, void*), TheirHandle object, int keyval, void* value,
        ValueKind kind) {
  return TheirCode(set(Ours<Handle>(object), Ours(kKeyvals, keyval),
                       kind == ValueKind::kPointer
                           ? value
                           : fortran::AllPlaces().Of(reinterpret_cast<MPI_Aint>(value))));
}

}  // namespace

// ---- Generalised requests -----------------------------------------------------------------------

namespace {

// Fortran's functions, which have C's types here.
Grequest& RequestOf(void* extra_state) { return *static_cast<Grequest*>(extra_state); }

template <typename InFortran, typename InC>
InFortran* InFortranOf(InC* function) {
  return reinterpret_cast<InFortran*>(reinterpret_cast<void (*)()>(function));
}

int QueryInFortran(void* extra_state, Status* status) {
  using Function = void(void*, Status*, int*);
  const Grequest& request = RequestOf(extra_state);
  int code = MPI_SUCCESS;
  InFortranOf<Function>(request.query)(request.extra_state, status, &code);
  return code;
}

int FreeInFortran(void* extra_state) {
  using Function = void(void*, int*);
  const Grequest& request = RequestOf(extra_state);
  int code = MPI_SUCCESS;
  InFortranOf<Function>(request.free)(request.extra_state, &code);
  delete &request;
  return code;
}

int CancelInFortran(void* extra_state, int complete) {
  using Function = void(void*, int*, int*);
  const Grequest& request = RequestOf(extra_state);
  int code = MPI_SUCCESS;
  InFortranOf<Function>(request.cancel)(request.extra_state, &complete, &code);
  return code;
}

}  // namespace

// ---- Their names --------------------------------------------------------------------------------

#define FERRY_ATTRIBUTES(Kind, Handle)                                                           \
  extern "C" int foreign_##Kind##_get_attr(TheirHandle, int, void*,                              \
                                           int*) asm("PMPI_" #Kind "_get_attr");                 \
  extern "C" FERRY_SHOWN int MPII_##Kind##_get_attr(TheirHandle object, int keyval, void* value, \
                                                    int* flag, ValueKind wanted) {               \
    return Get(foreign_##Kind##_get_attr, object, keyval, value, flag, wanted);                  \
  }                                                                                              \
  extern "C" FERRY_SHOWN int MPII_##Kind##_set_attr(TheirHandle object, int keyval, void* value, \
                                                    ValueKind kind) {                            \
    return Set<Handle>(abi.Kind##_set_attr, object, keyval, value, kind);                        \
  }

FERRY_ATTRIBUTES(Comm, MPI_Comm)
FERRY_ATTRIBUTES(Type, MPI_Datatype)
FERRY_ATTRIBUTES(Win, MPI_Win)

extern "C" FERRY_SHOWN void MPII_Keyval_set_proxy(int keyval, CopyProxy* copy_proxy,
                                                  DeleteProxy* delete_proxy) {
  const LastMade& last = LastOfThisThread();
  if (last.keyval == nullptr || last.keyval_number != keyval) {
    return;
  }
  auto* const proxied = new (std::nothrow) Proxied{copy_proxy, delete_proxy, *last.keyval};
  if (proxied != nullptr) {
    *last.keyval = {CopyByProxy, DeleteByProxy, proxied};
  }
}

extern "C" FERRY_SHOWN void MPII_Grequest_set_lang_f77(TheirHandle request) {
  const LastMade& last = LastOfThisThread();
  if (last.request == nullptr || last.request_handle != request) {
    return;
  }
  auto* const theirs = new (std::nothrow) Grequest(*last.request);
  if (theirs != nullptr) {
    *last.request = {QueryInFortran, FreeInFortran, CancelInFortran, theirs};
  }
}

// call(in, inout, length, datatype, function) calls the function of C++.
extern "C" FERRY_SHOWN void MPII_Op_set_cxx(TheirHandle op, void (*call)()) {
  const LastMade& last = LastOfThisThread();
  if (last.operation != nullptr && last.operation_handle == op) {
    last.operation->store(call, std::memory_order_relaxed);
  }
}

// call(kind, object, code, function): the kinds are those of Handled.
extern "C" FERRY_SHOWN void MPII_Errhandler_set_cxx(TheirHandle errhandler, void (*call)()) {
  const LastMade& last = LastOfThisThread();
  if (last.handler != nullptr && last.handler_handle == errhandler) {
    last.handler->store(call, std::memory_order_relaxed);
  }
}

}  // namespace ferry::foreign
