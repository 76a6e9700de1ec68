// Reduction operations (MPI 5.0, sections 6.9.5 to 6.9.7).
#include "mpi/op/op.h"

#include <cstdlib>
#include <memory>

#include "mpi/api/call.h"
#include "mpi/api/function.h"
#include "mpi/base/connection.h"
#include "mpi/coll/op_reducer.h"
#include "mpi/p2p/payload.h"

namespace ferry::mpi {
namespace {

using collective::kHostMemory;

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
int Create(Call call, Function* function, int commute, MPI_Op* handle) {
  call.NeedRunning();
  call.Need(reinterpret_cast<const void*>(function), "user_fn", handle, "op");
  return call.Then([&] { call.Give(MakeRef<Op>(function, commute != 0, kLender), handle); });
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
    FERRY_RETURN_FAILURE(copy->Load());
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

void NeedBuffer(Call& call, const void* buffer, const char* argument) {
  if (buffer == nullptr || buffer == MPI_IN_PLACE) {
    call.Refuse(MPI_ERR_BUFFER, std::string(argument) + (buffer == nullptr ? " is a null pointer"
                                                                           : " is MPI_IN_PLACE"));
  }
}

int ReduceLocal(Call call, const void* inbuf, void* inoutbuf, int64_t count, MPI_Datatype datatype,
                MPI_Op handle) {
  const Datatype* const type = call.Find(datatype);
  const Op* const op = call.Find(handle);
  if (call.ok() && !type->IsCommitted()) {
    call.Refuse(MPI_ERR_TYPE, type->Text() + " is not committed; call MPI_Type_commit first");
  }
  const Result<int64_t> bytes = call.ok() ? type->PackedBytes(count) : 0;
  call.Refuse(bytes.failure());
  (void)call.Then([&] { return op->Check(*type); });
  if (!call.ok() || bytes.value() == 0) {
    return call.result();
  }
  NeedBuffer(call, inbuf, "inbuf");
  NeedBuffer(call, inoutbuf, "inoutbuf");
  if (inbuf == inoutbuf) {
    call.Refuse(MPI_ERR_BUFFER, "inbuf and inoutbuf are the same memory");
  }
  return call.Then([&] { return Reduce(*op, inbuf, inoutbuf, count, *type); });
}

}  // namespace

FERRY_MPI_CALL(int, MPI_Op_create, (MPI_User_function * user_fn, int commute, MPI_Op* op)) {
  return Create(FERRY_MPI_NAME, user_fn, commute, op);
}

FERRY_MPI_CALL(int, MPI_Op_create_c, (MPI_User_function_c * user_fn, int commute, MPI_Op* op)) {
  return Create(FERRY_MPI_NAME, user_fn, commute, op);
}

FERRY_MPI_CALL(int, MPI_Op_free, (MPI_Op * handle)) {
  Call call(FERRY_MPI_NAME);
  call.Need(handle, "op");
  Op* const op = call.ok() ? call.Find(*handle) : nullptr;
  if (call.ok() && op->IsPredefined()) {
    call.Refuse(MPI_ERR_OP, std::string(op->name()) + " is predefined");
  }
  return call.Then([&] {
    if (ops.Remove(*handle) != nullptr) {
      op->Release();
    }
    *handle = MPI_OP_NULL;
  });
}

FERRY_MPI_CALL(int, MPI_Op_commutative, (MPI_Op handle, int* commute)) {
  Call call(FERRY_MPI_NAME);
  const Op* const op = call.Find(handle);
  call.Need(commute, "commute");
  return call.Then([&] { *commute = op->IsCommutative() ? 1 : 0; });
}

FERRY_MPI_TWINS(MPI_Reduce_local,
                (const void* inbuf, void* inoutbuf, Count count, MPI_Datatype datatype, MPI_Op op),
                ReduceLocal(FERRY_MPI_NAME, inbuf, inoutbuf, count, datatype, op));

}  // namespace ferry::mpi
