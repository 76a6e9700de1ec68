// One call of MPI, for the function that implements it: looks arguments up, and remembers the first
// that is wrong.
//
// After a failure further lookups report nothing more, so a function looks all its arguments up,
// and does the rest in Then. By then the error handler has run; the call returns result(). Messages
// and the completion of requests, which cannot afford the time, use fail.h alone.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <string>
#include <utility>

#include "mpi/api/then.h"
#include "mpi/base/error_handler.h"
#include "mpi/base/failure.h"
#include "mpi/base/handle_table.h"
#include "mpi/base/session.h"
#include "mpi/comm/call_notes.h"
#include "mpi/comm/comm.h"
#include "mpi/datatype/datatype.h"
#include "mpi/info/info.h"
#include "mpi/init/fail.h"
#include "mpi/init/process.h"
#include "mpi/op/op.h"
#include "mpi/p2p/request.h"
#include "mpi/rma/window.h"

namespace ferry::mpi {

class Call : public HasThen<Call> {
 public:
  // `name` begins with MPI_ and must live as long as the Call.
  // NOLINTNEXTLINE: implicit, for functions that are a call's all
  Call(const char* name) : name_(name), noted_(name, nullptr) {}

  const char* name() const { return name_; }
  bool ok() const { return result_ == MPI_SUCCESS; }
  int result() const { return result_; }

  // Returns the object of a handle; null after a failure. From then on the call fails by the error
  // handler of that communicator.
  Comm* Find(MPI_Comm handle);
  Datatype* Find(MPI_Datatype handle);
  Group* Find(MPI_Group handle);
  Info* Find(MPI_Info handle);
  ErrorHandler* Find(MPI_Errhandler handle);
  // Returns an error handler that is made for objects of the kind `owner`; null after a failure.
  ErrorHandler* FindFor(ErrorHandler::Owner owner, MPI_Errhandler handle);
  Op* Find(MPI_Op handle);
  Request* Find(MPI_Request handle);
  // Returns a window; null after a failure. From then on the call fails by the window's error
  // handler.
  Win* Find(MPI_Win handle);
  // Returns a session; null after a failure. From then on the call fails by the session's error
  // handler.
  Session* Find(MPI_Session handle);
  // As Find, but MPI_INFO_NULL is no failure: it returns null.
  Info* FindOrNull(MPI_Info handle);
  // Returns an intracommunicator, or an intercommunicator; the other kind is refused with
  // MPI_ERR_COMM.
  Comm* FindIntra(MPI_Comm handle);
  Comm* FindInter(MPI_Comm handle);

  // Fails while MPI is not running: neither between MPI_Init and MPI_Finalize, nor with a session.
  void NeedRunning();
  // Fails before MPI_Init and after MPI_Finalize.
  void NeedWorld();
  // From now on the call fails by this handler, for calls that belong to no object yet. The handler
  // is called with `object`, a handle of its kind.
  void Blame(Ref<ErrorHandler> handler, void* object) {
    handler_ = std::move(handler);
    object_ = object;
  }
  // Names a rank of a window, or of the communicator, for those who look at a call that waits.
  void NotePeer(const Comm& comm, int rank) {
    noted_.note().peers = &comm;
    noted_.note().peer = rank;
  }
  // Names a file, for the same; `use` outlives the call.
  void NoteFile(const FileUse& use) { noted_.note().file = &use; }
  // Refuses a null pointer with MPI_ERR_ARG. Takes one or more pairs of pointer and argument's
  // name.
  void Need(const void* pointer, const char* argument) {
    if (pointer == nullptr) [[unlikely]] {
      RefuseNull(argument);
    }
  }
  template <typename... Rest>
  void Need(const void* pointer, const char* argument, Rest... rest) {
    Need(pointer, argument);
    Need(rest...);
  }
  // Refuses a null pointer with MPI_ERR_ARG and the message `text`.
  void NeedPlace(const void* pointer, const char* text);
  // Refuses a null array with MPI_ERR_ARG if `count` says that it has elements.
  void NeedArray(const void* pointer, int count, const char* argument);
  // Refuses a negative number with `error_class`.
  void NeedCount(int count, const char* argument, int error_class = MPI_ERR_ARG);
  void Refuse(int error_class, std::string text) { Refuse(Failure{error_class, std::move(text)}); }
  void Refuse(const Failure& failure);

  // Refuses a failure, and returns the value that the call is to return.
  int Return(const Failure& failure) {
    Refuse(failure);
    return result_;
  }

  // Stores a handle for the object in *handle; the handle takes the reference over. Null:
  // MPI_..._NULL.
  void Give(Ref<Group> group, MPI_Group* handle);
  void Give(Ref<Info> info, MPI_Info* handle);
  void Give(Ref<ErrorHandler> handler, MPI_Errhandler* handle);
  void Give(Ref<Op> op, MPI_Op* handle);
  void Give(Ref<Comm> comm, MPI_Comm* handle);
  void Give(Ref<Session> session, MPI_Session* handle);
  void Give(Ref<Datatype> type, MPI_Datatype* handle);
  void Give(Ref<Win> win, MPI_Win* handle);
  // Stores a handle for the object, or refuses the failure.
  template <typename T, typename Handle>
  void Give(Result<Ref<T>> made, Handle* handle) {
    Refuse(made.failure());
    if (ok()) {
      Give(std::move(made).value(), handle);
    }
  }

 private:
  void RefuseNull(const char* argument);
  // Null: the handle stands for no object, and the call has failed.
  template <typename T, typename Handle, typename Table>
  T* FindIn(const Table& table, Handle handle, int error_class, const char* kind);
  // Null: the call has failed, if not before then now, by lack of memory, with the message `text`.
  template <typename T, typename Handle, typename Table>
  T* GiveIn(Table* table, Ref<T> object, Handle* handle, const char* text);

  const char* const name_;
  NotedCall noted_;
  Comm* comm_ = nullptr;
  Ref<ErrorHandler> handler_;  // see Blame; null: that of comm_
  void* object_ = nullptr;
  int result_ = MPI_SUCCESS;
};

// ---- For calls that begin MPI ------------------------------------------------------

const Process::Joining& HowToJoin();

// ---- For calls on datatypes --------------------------------------------------------

// Returns a handle for a datatype that may have others: the only one of a predefined datatype,
// otherwise a new one, which the program frees. Null: no memory.
MPI_Datatype HandleOf(Datatype& type);

// Refuses a negative length with `error_class`.
void NeedLength(Call& call, int64_t length, const char* argument = "count",
                int error_class = MPI_ERR_COUNT);

// Stores the result in the type that the call has for it; MPI_UNDEFINED if it is too large for
// that.
template <typename Number>
void PutNumber(Number* to, int64_t value) {
  *to = static_cast<Number>(value);
  if (*to != value) {
    *to = MPI_UNDEFINED;
  }
}

}  // namespace ferry::mpi
