#include "client/mpi/api/call.h"

#include <utility>

#include "client/mpi/runtime/fail.h"

namespace ferry::mpi {
namespace {

// Null: no memory.
template <typename T, typename Handle>
bool GiveHandle(HandleTable<T, Handle>* table, Ref<T> object, Handle* handle) {
  Handle added = table->Add(object.get());
  if (added == nullptr) {
    return false;
  }
  (void)object.Leave();
  *handle = added;
  return true;
}

}  // namespace

Comm* Call::Find(MPI_Comm handle) {
  Comm* found = comms.Find(handle);
  if (!ok()) {
    return nullptr;
  }
  if (found == nullptr) {
    result_ = FailComm(name_, handle);
    return nullptr;
  }
  comm_ = found;
  return found;
}

Comm* Call::FindIntra(MPI_Comm handle) {
  Comm* found = Find(handle);
  if (found != nullptr && found->is_inter()) {
    Refuse(MPI_ERR_COMM, "the communicator is an intercommunicator");
  }
  return ok() ? found : nullptr;
}

Comm* Call::FindInter(MPI_Comm handle) {
  Comm* found = Find(handle);
  if (found != nullptr && !found->is_inter()) {
    Refuse(MPI_ERR_COMM, "the communicator is no intercommunicator");
  }
  return ok() ? found : nullptr;
}

Datatype* Call::Find(MPI_Datatype handle) {
  Datatype* found = datatypes.Find(handle);
  if (ok() && found == nullptr) {
    result_ = FailHandle(name_, comm_, MPI_ERR_TYPE, "MPI_Datatype", handle);
  }
  return ok() ? found : nullptr;
}

Group* Call::Find(MPI_Group handle) {
  Group* found = groups.Find(handle);
  if (ok() && found == nullptr) {
    result_ = FailHandle(name_, comm_, MPI_ERR_GROUP, "MPI_Group", handle);
  }
  return ok() ? found : nullptr;
}

Info* Call::Find(MPI_Info handle) {
  Info* found = infos.Find(handle);
  if (ok() && found == nullptr) {
    Refuse(MPI_ERR_INFO, handle == MPI_INFO_NULL ? "info is MPI_INFO_NULL"
                                                 : "info names no info object: was it freed?");
  }
  return ok() ? found : nullptr;
}

Info* Call::FindOrNull(MPI_Info handle) { return handle == MPI_INFO_NULL ? nullptr : Find(handle); }

ErrorHandler* Call::Find(MPI_Errhandler handle) {
  ErrorHandler* found = error_handlers.Find(handle);
  if (ok() && found == nullptr) {
    Refuse(MPI_ERR_ERRHANDLER, handle == MPI_ERRHANDLER_NULL
                                   ? "the error handler is MPI_ERRHANDLER_NULL"
                                   : "the error handler does not exist: was it freed?");
  }
  return ok() ? found : nullptr;
}

void Call::NeedRunning() {
  if (ok()) {
    result_ = CheckRunning(name_);
  }
}

void Call::Need(const void* pointer, const char* argument) {
  if (pointer == nullptr) {
    Refuse(MPI_ERR_ARG, std::string(argument) + " is a null pointer");
  }
}

void Call::NeedArray(const void* pointer, int count, const char* argument) {
  if (count > 0) {
    Need(pointer, argument);
  }
}

void Call::NeedCount(int count, const char* argument, int error_class) {
  if (count < 0) {
    Refuse(error_class, std::string(argument) + " is " + std::to_string(count));
  }
}

void Call::Refuse(const Failure& failure) {
  if (ok() && !failure.ok()) {
    result_ = Fail(name_, comm_, failure);
  }
}

void Call::Give(Ref<Group> group, MPI_Group* handle) {
  if (ok() && !GiveHandle(&groups, std::move(group), handle)) {
    Refuse(MPI_ERR_NO_MEM, "no memory for another group");
  }
}

void Call::Give(Ref<Info> info, MPI_Info* handle) {
  if (ok() && !GiveHandle(&infos, std::move(info), handle)) {
    Refuse(MPI_ERR_NO_MEM, "no memory for another info object");
  }
}

void Call::Give(Ref<ErrorHandler> handler, MPI_Errhandler* handle) {
  if (ok() && !GiveHandle(&error_handlers, std::move(handler), handle)) {
    Refuse(MPI_ERR_NO_MEM, "no memory for another error handler");
  }
}

void Call::Give(Ref<Comm> comm, MPI_Comm* handle) {
  if (!ok()) {
    return;
  }
  if (!comm) {
    *handle = MPI_COMM_NULL;
    return;
  }
  Comm* made = comm.get();
  if (!GiveHandle(&comms, std::move(comm), handle)) {
    Refuse(MPI_ERR_NO_MEM, "no memory for another communicator");
    return;
  }
  made->SetHandle(*handle);
}

void Call::Give(Result<Ref<Comm>> made, MPI_Comm* handle) {
  Refuse(made.failure());
  if (ok()) {
    Give(std::move(made).value(), handle);
  }
}

}  // namespace ferry::mpi
