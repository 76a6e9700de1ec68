// Reduction operations (MPI 5.0, sections 6.9.5 to 6.9.7).
#include "client/mpi/op/op.h"

#include <cstdlib>
#include <memory>

#include "client/mpi/api/function.h"
#include "client/mpi/api/type_arguments.h"
#include "client/mpi/base/connection.h"
#include "client/mpi/base/handle_table.h"
#include "client/mpi/channel/op_reducer.h"
#include "client/mpi/request/payload.h"

namespace ferry::mpi {
namespace {

int FindOp(const char* call, MPI_Op handle, Op** op) {
  *op = ops.Find(handle);
  return *op != nullptr ? MPI_SUCCESS : FailHandle(call, nullptr, MPI_ERR_OP, "MPI_Op", handle);
}

void TakeBack(MPI_Datatype handle) {
  if (Datatype* const type = datatypes.Remove(handle); type != nullptr) {
    if (type->handle() == handle) {
      type->set_handle(nullptr);
    }
    type->Release();
  }
}

constexpr HandleLender kLender = {
    [](const Datatype& type) { return HandleOf(const_cast<Datatype&>(type)); }, TakeBack};

template <typename Function>
int Create(const char* call, Function* function, int commute, MPI_Op* handle) {
  if (const int error = CheckRunning(call); error != MPI_SUCCESS) {
    return error;
  }
  if (const int error =
          CheckPointer(call, reinterpret_cast<const void*>(function), "user_fn", handle, "op");
      error != MPI_SUCCESS) {
    return error;
  }
  Ref<Op> op = MakeRef<Op>(function, commute != 0, kLender);
  const MPI_Op added = ops.Add(op.get());
  if (added == nullptr) {
    return Fail(call, nullptr, MPI_ERR_NO_MEM, "there is no memory for another operation");
  }
  op->set_handle(added);
  op.Leave();
  *handle = added;
  return MPI_SUCCESS;
}

// Elements, packed in memory of the host.
class HostCopy {
 public:
  HostCopy(void* buffer, int64_t count, const Datatype& type)
      : payload_(buffer, count, type),
        copy_(std::malloc(static_cast<size_t>(payload_.size_bytes()))) {}
  Failure Load() {
    return copy_ ? payload_.CopyOut(copy_.get())
                 : Failure{MPI_ERR_NO_MEM, "no memory for a copy of device memory"};
  }
  Failure Store() { return payload_.CopyIn(copy_.get(), payload_.size_bytes()); }
  void* copy() const { return copy_.get(); }

 private:
  struct Free {
    void operator()(void* memory) const { std::free(memory); }
  };
  Payload payload_;
  std::unique_ptr<void, Free> copy_;
};

// Reduces copies of both operands: only streams reach one of them, and no device reduces them.
Failure ReduceCopies(const Op& op, const void* in, void* inout, int64_t count,
                     const Datatype& type) {
  HostCopy in_copy(const_cast<void*>(in), count, type);
  HostCopy inout_copy(inout, count, type);
  for (HostCopy* copy : {&in_copy, &inout_copy}) {
    if (Failure failure = copy->Load(); !failure.ok()) {
      return failure;
    }
  }
  const ErrorCode error = OpReducer(op, type).Reduce(in_copy.copy(), inout_copy.copy(),
                                                     inout_copy.copy(), static_cast<size_t>(count));
  return error == ErrorCode::kOk ? inout_copy.Store() : FailureOf(error);
}

Failure Reduce(const Op& op, const void* in, void* inout, int64_t count, const Datatype& type) {
  if (front_end->IsByStream(in) || front_end->IsByStream(inout)) {
    OpReducer reducer(op, type);
    return reducer.ChooseDevice({in, inout}, count) == kHostMemory
               ? ReduceCopies(op, in, inout, count, type)
               : FailureOf(reducer.Reduce(in, inout, inout, static_cast<size_t>(count)));
  }
  op.Apply(in, inout, count, type);
  return {};
}

int ReduceLocal(const char* call, const void* inbuf, void* inoutbuf, int64_t count,
                MPI_Datatype datatype, MPI_Op handle) {
  Datatype* type = nullptr;
  if (const int error = FindType(call, datatype, &type); error != MPI_SUCCESS) {
    return error;
  }
  Op* op = nullptr;
  if (const int error = FindOp(call, handle, &op); error != MPI_SUCCESS) {
    return error;
  }
  if (!type->IsCommitted()) {
    return Fail(call, nullptr, MPI_ERR_TYPE, "the datatype is not committed");
  }
  const Result<int64_t> bytes = type->PackedBytes(count);
  if (!bytes.ok()) {
    return Fail(call, nullptr, bytes.failure());
  }
  if (const Failure failure = op->Check(*type); !failure.ok()) {
    return Fail(call, nullptr, failure);
  }
  if (bytes.value() == 0) {
    return MPI_SUCCESS;
  }
  for (const auto& [buffer, name] : {std::pair<const void*, const char*>{inbuf, "inbuf"},
                                     std::pair<const void*, const char*>{inoutbuf, "inoutbuf"}}) {
    if (buffer == nullptr || buffer == MPI_IN_PLACE) {
      return Fail(
          call, nullptr, MPI_ERR_BUFFER,
          std::string(name) + (buffer == nullptr ? " is a null pointer" : " is MPI_IN_PLACE"));
    }
  }
  if (inbuf == inoutbuf) {
    return Fail(call, nullptr, MPI_ERR_BUFFER, "inbuf and inoutbuf are the same memory");
  }
  const Failure failure = Reduce(*op, inbuf, inoutbuf, count, *type);
  return failure.ok() ? MPI_SUCCESS : Fail(call, nullptr, failure);
}

}  // namespace
}  // namespace ferry::mpi

using namespace ferry::mpi;  // NOLINT: the functions below are of no namespace

FERRY_MPI_CALL(int, Op_create, (MPI_User_function * user_fn, int commute, MPI_Op* op)) {
  return Create("MPI_Op_create", user_fn, commute, op);
}

FERRY_MPI_CALL(int, Op_create_c, (MPI_User_function_c * user_fn, int commute, MPI_Op* op)) {
  return Create("MPI_Op_create_c", user_fn, commute, op);
}

FERRY_MPI_CALL(int, Op_free, (MPI_Op * handle)) {
  const char* const call = "MPI_Op_free";
  if (const int error = CheckPointer(call, handle, "op"); error != MPI_SUCCESS) {
    return error;
  }
  Op* op = nullptr;
  if (const int error = FindOp(call, *handle, &op); error != MPI_SUCCESS) {
    return error;
  }
  if (op->IsPredefined()) {
    return Fail(call, nullptr, MPI_ERR_OP, std::string(op->name()) + " is predefined");
  }
  if (ops.Remove(*handle) != nullptr) {
    op->Release();
  }
  *handle = MPI_OP_NULL;
  return MPI_SUCCESS;
}

FERRY_MPI_CALL(int, Op_commutative, (MPI_Op handle, int* commute)) {
  Op* op = nullptr;
  if (const int error = FindOp("MPI_Op_commutative", handle, &op); error != MPI_SUCCESS) {
    return error;
  }
  if (const int error = CheckPointer("MPI_Op_commutative", commute, "commute");
      error != MPI_SUCCESS) {
    return error;
  }
  *commute = op->IsCommutative() ? 1 : 0;
  return MPI_SUCCESS;
}

FERRY_MPI_CALL(int, Reduce_local,
               (const void* inbuf, void* inoutbuf, int count, MPI_Datatype datatype, MPI_Op op)) {
  return ReduceLocal("MPI_Reduce_local", inbuf, inoutbuf, count, datatype, op);
}

FERRY_MPI_CALL(int, Reduce_local_c,
               (const void* inbuf, void* inoutbuf, MPI_Count count, MPI_Datatype datatype,
                MPI_Op op)) {
  return ReduceLocal("MPI_Reduce_local_c", inbuf, inoutbuf, count, datatype, op);
}
