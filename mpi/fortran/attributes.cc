// Attributes in Fortran (MPI 5.0, sections 7.7 and 19.3.7).
#include "mpi/fortran/attribute_values.h"

#include "mpi/fortran/by_hand.h"
#include "mpi/fortran/predefined.h"

namespace ferry::fortran {
namespace {

template <typename Handle, typename Integer>
void Get(int (*call)(Handle, int, void*, int*), int object, int keyval, Integer* value, int* flag,
         int* ierror) {
  void* found = nullptr;
  int is_set = 0;
  const int code = call(HandleOf<Handle>(object), keyval, &found, &is_set);
  if (code == MPI_SUCCESS && is_set != 0) {
    *value = static_cast<Integer>(FromC(keyval, found));
  }
  *flag = Logical(is_set);
  Give(ierror, code);
}

template <typename Handle>
void Set(int (*call)(Handle, int, void*), int object, int keyval, MPI_Aint value, int* ierror) {
  Give(ierror, call(HandleOf<Handle>(object), keyval, AllPlaces().Of(value)));
}

// ---- Keyvals ------------------------------------------------------------------------------------

// The extra state that C's callbacks are handed. Lives as long as the process: a keyval that
// was freed still serves the attributes that have it.
template <typename Integer>
struct Keyval {
  using Copy = void(int*, int*, Integer*, Integer*, Integer*, int*, int*);
  using Delete = void(int*, int*, Integer*, Integer*, int*);

  Copy* copy;
  Delete* remove;
  Integer extra_state;
};

template <typename Handle, typename Integer>
int CopyAttribute(Handle object, int number, void* extra_state, void* in, void* out, int* flag) {
  auto& keyval = *static_cast<Keyval<Integer>*>(extra_state);
  int of = NumberOf(object);
  auto value_in = static_cast<Integer>(FromC(in));
  Integer value_out = 0;
  int is_copied = 0;
  int code = MPI_SUCCESS;
  keyval.copy(&of, &number, &keyval.extra_state, &value_in, &value_out, &is_copied, &code);
  *flag = IsTrue(is_copied);
  if (code == MPI_SUCCESS && *flag != 0) {
    // A value that C has set stays C's pointer when it is copied as it is.
    *static_cast<void**>(out) = value_out == value_in ? in : AllPlaces().Of(value_out);
  }
  return code;
}

template <typename Handle, typename Integer>
int DeleteAttribute(Handle object, int number, void* value, void* extra_state) {
  auto& keyval = *static_cast<Keyval<Integer>*>(extra_state);
  int of = NumberOf(object);
  auto old = static_cast<Integer>(FromC(value));
  int code = MPI_SUCCESS;
  keyval.remove(&of, &number, &old, &keyval.extra_state, &code);
  return code;
}

// Predefined callbacks stay C's, so that what they copy stays the pointer that it is.
template <typename Handle, typename Integer, typename CCopy, typename CDelete>
void Create(int (*call)(CCopy*, CDelete*, int*, void*), Function* copy, Function* remove,
            Function* dup_fn, Function* null_copy_fn, Function* null_delete_fn, int* keyval,
            Integer extra_state, int* ierror) {
  auto* const state =
      new Keyval<Integer>{reinterpret_cast<typename Keyval<Integer>::Copy*>(copy),
                          reinterpret_cast<typename Keyval<Integer>::Delete*>(remove), extra_state};
  CCopy* c_copy = CopyAttribute<Handle, Integer>;
  if (copy == null_copy_fn) {
    c_copy = nullptr;  // MPI_COMM_NULL_COPY_FN and its like
  } else if (copy == dup_fn) {
    c_copy = reinterpret_cast<CCopy*>(MPI_COMM_DUP_FN);  // those of other kinds are the same
  }
  CDelete* const c_delete = remove == null_delete_fn ? nullptr : DeleteAttribute<Handle, Integer>;
  const int code = call(c_copy, c_delete, keyval, state);
  if (code != MPI_SUCCESS) {
    delete state;
  }
  Give(ierror, code);
}

template <typename T>
Function* Plain(T* function) {
  return reinterpret_cast<Function*>(function);
}

}  // namespace

#define FERRY_ATTRIBUTES(Kind, Handle, low)                                                    \
  void Kind##_get_attr(decltype(&MPI_##Kind##_get_attr) call, int* object, int* keyval,        \
                       MPI_Aint* attribute_val, int* flag, int* ierror) {                      \
    Get(call, *object, *keyval, attribute_val, flag, ierror);                                  \
  }                                                                                            \
  void Kind##_set_attr(decltype(&MPI_##Kind##_set_attr) call, int* object, int* keyval,        \
                       MPI_Aint* attribute_val, int* ierror) {                                 \
    Set(call, *object, *keyval, *attribute_val, ierror);                                       \
  }                                                                                            \
  void Kind##_create_keyval(decltype(&MPI_##Kind##_create_keyval) call, Function* copy_fn,     \
                            Function* delete_fn, int* keyval, MPI_Aint* extra_state,           \
                            int* ierror) {                                                     \
    Create<Handle>(call, copy_fn, delete_fn, Plain(low##_dup_fn_), Plain(low##_null_copy_fn_), \
                   Plain(low##_null_delete_fn_), keyval, *extra_state, ierror);                \
  }

FERRY_ATTRIBUTES(Comm, MPI_Comm, mpi_comm)
FERRY_ATTRIBUTES(Type, MPI_Datatype, mpi_type)
FERRY_ATTRIBUTES(Win, MPI_Win, mpi_win)

// ---- The deprecated calls, whose values are INTEGER ---------------------------------------------

void Attr_get(decltype(&MPI_Attr_get) call, int* comm, int* keyval, int* attribute_val, int* flag,
              int* ierror) {
  Get(call, *comm, *keyval, attribute_val, flag, ierror);
}

void Attr_put(decltype(&MPI_Attr_put) call, int* comm, int* keyval, int* attribute_val,
              int* ierror) {
  Set(call, *comm, *keyval, *attribute_val, ierror);
}

void Keyval_create(decltype(&MPI_Keyval_create) call, Function* copy_fn, Function* delete_fn,
                   int* keyval, int* extra_state, int* ierror) {
  Create<MPI_Comm>(call, copy_fn, delete_fn, Plain(mpi_dup_fn_), Plain(mpi_null_copy_fn_),
                   Plain(mpi_null_delete_fn_), keyval, *extra_state, ierror);
}

}  // namespace ferry::fortran
