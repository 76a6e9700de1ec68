#include "client/mpi/api/type_arguments.h"

#include "client/mpi/base/handle_table.h"

namespace ferry::mpi {

int FindType(const char* call, MPI_Datatype handle, Datatype** type) {
  *type = datatypes.Find(handle);
  return *type != nullptr ? MPI_SUCCESS
                          : FailHandle(call, nullptr, MPI_ERR_TYPE, "MPI_Datatype", handle);
}

int CheckPointer(const char* call, const void* pointer, const char* argument) {
  return pointer != nullptr
             ? MPI_SUCCESS
             : Fail(call, nullptr, MPI_ERR_ARG, std::string(argument) + " is a null pointer");
}

int CheckCount(const char* call, const char* argument, int64_t count, int error_class) {
  return count >= 0 ? MPI_SUCCESS
                    : Fail(call, nullptr, error_class,
                           std::string(argument) + " is negative: " + std::to_string(count));
}

int PublishType(const char* call, MadeDatatype made, MPI_Datatype* handle) {
  if (!made.ok()) {
    return Fail(call, nullptr, made.failure());
  }
  Ref<Datatype> type = std::move(made).value();
  const MPI_Datatype added = datatypes.Add(type.get());
  if (added == nullptr) {
    return Fail(call, nullptr, MPI_ERR_NO_MEM, "there is no memory for another datatype");
  }
  type->set_handle(added);
  type.Leave();
  *handle = added;
  return MPI_SUCCESS;
}

MPI_Datatype HandleOf(Datatype& type) {
  if (type.IsPredefined()) {
    return type.handle();
  }
  type.Retain();
  const MPI_Datatype handle = datatypes.Add(&type);
  if (handle == nullptr) {
    type.Release();
  } else if (type.handle() == nullptr) {
    type.set_handle(handle);
  }
  return handle;
}

}  // namespace ferry::mpi
