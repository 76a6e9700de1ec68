#include "mpi/api/call.h"

#include <utility>

namespace ferry::mpi {

// ---- Objects of handles -------------------------------------------------------------------------

template <typename T, typename Handle, typename Table>
T* Call::FindIn(const Table& table, Handle handle, int error_class, const char* kind) {
  T* found = table.Find(handle);
  if (ok() && found == nullptr) {
    NeedRunning();
    Refuse(error_class, NoSuchHandle(kind, handle));
  }
  return ok() ? found : nullptr;
}

Datatype* Call::Find(MPI_Datatype handle) {
  return FindIn<Datatype>(datatypes, handle, MPI_ERR_TYPE, "MPI_Datatype");
}

Group* Call::Find(MPI_Group handle) {
  return FindIn<Group>(groups, handle, MPI_ERR_GROUP, "MPI_Group");
}

Op* Call::Find(MPI_Op handle) { return FindIn<Op>(ops, handle, MPI_ERR_OP, "MPI_Op"); }

Request* Call::Find(MPI_Request handle) {
  return FindIn<Request>(requests, handle, MPI_ERR_REQUEST, "MPI_Request");
}

Win* Call::Find(MPI_Win handle) {
  Win* const found = FindIn<Win>(wins, handle, MPI_ERR_WIN, "MPI_Win");
  if (found != nullptr) {
    comm_ = &found->comm();
    noted_.note().comm = comm_;
    noted_.note().is_window = true;
  }
  return found;
}

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
  noted_.note().comm = found;
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

Session* Call::Find(MPI_Session handle) {
  Session* const found = sessions.Find(handle);
  if (ok() && found == nullptr) {
    Refuse(MPI_ERR_SESSION, handle == MPI_SESSION_NULL
                                ? "the session is MPI_SESSION_NULL"
                                : "the session does not exist: was it finalised?");
  }
  if (!ok()) {
    return nullptr;
  }
  Blame(found->error_handler(), handle);
  return found;
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

ErrorHandler* Call::FindFor(ErrorHandler::Owner owner, MPI_Errhandler handle) {
  ErrorHandler* const handler = Find(handle);
  if (handler != nullptr && !handler->IsFor(owner)) {
    Refuse(MPI_ERR_ERRHANDLER, "the error handler was made for another kind of object");
  }
  return ok() ? handler : nullptr;
}

// ---- Other arguments ----------------------------------------------------------------------------

void Call::NeedRunning() {
  if (ok()) {
    result_ = CheckRunning(name_);
  }
}

void Call::NeedWorld() {
  if (ok()) {
    result_ = CheckInWorld(name_);
  }
}

void Call::RefuseNull(const char* argument) {
  Refuse(MPI_ERR_ARG, std::string(argument) + " is a null pointer");
}

void Call::NeedPlace(const void* pointer, const char* text) {
  if (pointer == nullptr) {
    Refuse(MPI_ERR_ARG, text);
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
    result_ = handler_ ? FailBy(name_, handler_, object_, failure) : Fail(name_, comm_, failure);
  }
}

// ---- New handles --------------------------------------------------------------------------------

template <typename T, typename Handle, typename Table>
T* Call::GiveIn(Table* table, Ref<T> object, Handle* handle, const char* text) {
  if (!ok()) {
    return nullptr;
  }
  Handle added = table->Add(object.get());
  if (added == nullptr) {
    Refuse(MPI_ERR_NO_MEM, text);
    return nullptr;
  }
  *handle = added;
  return object.Leave();
}

void Call::Give(Ref<Group> group, MPI_Group* handle) {
  GiveIn(&groups, std::move(group), handle, "no memory for another group");
}

void Call::Give(Ref<Info> info, MPI_Info* handle) {
  GiveIn(&infos, std::move(info), handle, "no memory for another info object");
}

void Call::Give(Ref<ErrorHandler> handler, MPI_Errhandler* handle) {
  GiveIn(&error_handlers, std::move(handler), handle, "no memory for another error handler");
}

void Call::Give(Ref<Op> op, MPI_Op* handle) {
  if (Op* const made =
          GiveIn(&ops, std::move(op), handle, "there is no memory for another operation")) {
    made->set_handle(*handle);
  }
}

void Call::Give(Ref<Datatype> type, MPI_Datatype* handle) {
  if (Datatype* const made =
          GiveIn(&datatypes, std::move(type), handle, "there is no memory for another datatype")) {
    made->set_handle(*handle);
  }
}

void Call::Give(Ref<Win> win, MPI_Win* handle) {
  if (Win* const made = GiveIn(&wins, std::move(win), handle, "no memory for another window")) {
    made->SetHandle(*handle);
  }
}

void Call::Give(Ref<Session> session, MPI_Session* handle) {
  if (Session* const made =
          GiveIn(&sessions, std::move(session), handle, "no memory for another session")) {
    made->SetHandle(*handle);
  }
}

void Call::Give(Ref<Comm> comm, MPI_Comm* handle) {
  if (ok() && !comm) {
    *handle = MPI_COMM_NULL;
  } else if (Comm* const made =
                 GiveIn(&comms, std::move(comm), handle, "no memory for another communicator")) {
    made->SetHandle(*handle);
  }
}

}  // namespace ferry::mpi
