// One call of MPI, as its binding sees it: looks arguments up, and remembers the first that is
// wrong.
//
// After a failure further lookups say nothing more, so a binding looks all its arguments up, and
// does the rest in Then. The error handler has run by then; result() is what the call returns.
// Messages and the completion of requests, which cannot afford that, use fail.h alone.
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
  // `name` with MPI_; it must live as long.
  Call(const char* name) : name_(name) {}  // NOLINT: implicit, for functions that are a call's all

  bool ok() const { return result_ == MPI_SUCCESS; }
  int result() const { return result_; }

  // The object of a handle; null after a failure. A communicator's error handler counts for what
  // follows.
  Comm* Find(MPI_Comm handle);
  Datatype* Find(MPI_Datatype handle);
  Group* Find(MPI_Group handle);
  Info* Find(MPI_Info handle);
  ErrorHandler* Find(MPI_Errhandler handle);
  // One for such objects.
  ErrorHandler* FindFor(ErrorHandler::Owner owner, MPI_Errhandler handle);
  Op* Find(MPI_Op handle);
  Request* Find(MPI_Request handle);
  // The same as of a communicator.
  Win* Find(MPI_Win handle);
  // A session's error handler counts for what follows.
  Session* Find(MPI_Session handle);
  // The same; null without a failure for MPI_INFO_NULL.
  Info* FindOrNull(MPI_Info handle);
  // An intracommunicator, or an intercommunicator; MPI_ERR_COMM for the other kind.
  Comm* FindIntra(MPI_Comm handle);
  Comm* FindInter(MPI_Comm handle);

  // Fails while MPI is not running: neither between MPI_Init and MPI_Finalize, nor with a session.
  void NeedRunning();
  // Fails before MPI_Init and after MPI_Finalize.
  void NeedWorld();
  // This handler counts for what follows, where the call belongs to no object yet; the one of
  // `object`, a handle of the handler's kind.
  void Blame(Ref<ErrorHandler> handler, void* object) {
    handler_ = std::move(handler);
    object_ = object;
  }
  // MPI_ERR_ARG for a null pointer. Several: pairs of pointer and name.
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
  // The same, in the words of `text`.
  void NeedPlace(const void* pointer, const char* text);
  // The same, where the array has elements.
  void NeedArray(const void* pointer, int count, const char* argument);
  // `error_class` for a negative number.
  void NeedCount(int count, const char* argument, int error_class = MPI_ERR_ARG);
  void Refuse(int error_class, std::string text) { Refuse(Failure{error_class, std::move(text)}); }
  void Refuse(const Failure& failure);

  // Refuses a failure, and returns what the call is to return.
  int Return(const Failure& failure) {
    Refuse(failure);
    return result_;
  }

  // Gives the object, and the caller's part in it, a handle. A null one is MPI_..._NULL.
  void Give(Ref<Group> group, MPI_Group* handle);
  void Give(Ref<Info> info, MPI_Info* handle);
  void Give(Ref<ErrorHandler> handler, MPI_Errhandler* handle);
  void Give(Ref<Op> op, MPI_Op* handle);
  void Give(Ref<Comm> comm, MPI_Comm* handle);
  void Give(Ref<Session> session, MPI_Session* handle);
  void Give(Ref<Datatype> type, MPI_Datatype* handle);
  void Give(Ref<Win> win, MPI_Win* handle);
  // The same, or refuses the failure.
  template <typename T, typename Handle>
  void Give(Result<Ref<T>> made, Handle* handle) {
    Refuse(made.failure());
    if (ok()) {
      Give(std::move(made).value(), handle);
    }
  }

 private:
  void RefuseNull(const char* argument);
  // Null: it does not stand for one, and the call has failed.
  template <typename T, typename Handle, typename Table>
  T* FindIn(const Table& table, Handle handle, int error_class, const char* kind);
  // Null: the call has failed; by lack of memory, as `text` says, if it had not yet.
  template <typename T, typename Handle, typename Table>
  T* GiveIn(Table* table, Ref<T> object, Handle* handle, const char* text);

  const char* const name_;
  Comm* comm_ = nullptr;
  Ref<ErrorHandler> handler_;  // see Blame; null: that of comm_
  void* object_ = nullptr;
  int result_ = MPI_SUCCESS;
};

// ---- What calls that begin MPI need beside ------------------------------------------------------

const Process::Joining& HowToJoin();

// ---- What calls on datatypes need beside --------------------------------------------------------

// A handle for a datatype that may have some: the one and only of a predefined one, otherwise a
// new one, which the program frees. Null: no memory.
MPI_Datatype HandleOf(Datatype& type);

// `error_class` for a negative number.
void NeedLength(Call& call, int64_t length, const char* argument = "count",
                int error_class = MPI_ERR_COUNT);

// The result in the type that the call has for it; MPI_UNDEFINED if it is too large for that.
template <typename Number>
void PutNumber(Number* to, int64_t value) {
  *to = static_cast<Number>(value);
  if (*to != value) {
    *to = MPI_UNDEFINED;
  }
}

}  // namespace ferry::mpi
