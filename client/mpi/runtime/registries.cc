#include "client/mpi/runtime/registries.h"

#include "ferry/mpi/mpi.h"

namespace ferry::mpi {
namespace {

// Above the ABI's predefined attributes.
constexpr int kFirstKeyval = 1024;

template <typename Handle, typename Function>
int CallCopy(AnyFunction function, void* object, int keyval, void* extra_state, void* value,
             void** copied, int* wanted) {
  return reinterpret_cast<Function*>(function)(static_cast<Handle>(object), keyval, extra_state,
                                               value, copied, wanted);
}

template <typename Handle, typename Function>
int CallRemove(AnyFunction function, void* object, int keyval, void* value, void* extra_state) {
  return reinterpret_cast<Function*>(function)(static_cast<Handle>(object), keyval, value,
                                               extra_state);
}

}  // namespace

// Not destroyed at exit: threads of the program may still run.
Keyvals& ProcessKeyvals() {
  static auto& keyvals = *new Keyvals(kFirstKeyval);
  return keyvals;
}

ErrorCodes& ProcessErrorCodes() {
  static auto& codes = *new ErrorCodes();
  return codes;
}

Keyval::Caller CallerOf(AttributeKind kind) {
  switch (kind) {
    case AttributeKind::kCommunicator:
      return {CallCopy<MPI_Comm, MPI_Comm_copy_attr_function>,
              CallRemove<MPI_Comm, MPI_Comm_delete_attr_function>};
    case AttributeKind::kDatatype:
      return {CallCopy<MPI_Datatype, MPI_Type_copy_attr_function>,
              CallRemove<MPI_Datatype, MPI_Type_delete_attr_function>};
    case AttributeKind::kWindow:
      return {CallCopy<MPI_Win, MPI_Win_copy_attr_function>,
              CallRemove<MPI_Win, MPI_Win_delete_attr_function>};
  }
  return {nullptr, nullptr};
}

}  // namespace ferry::mpi
