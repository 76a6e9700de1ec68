// One call of MPI, as its binding sees it: looks arguments up, and remembers the first that is
// wrong.
//
// After a failure further lookups say nothing more, so a binding looks all its arguments up, and
// then asks once. The error handler has run by then; result() is what the call returns.
#pragma once

#include <mpi.h>

#include <string>

#include "client/mpi/base/error_handler.h"
#include "client/mpi/base/failure.h"
#include "client/mpi/base/handle_table.h"
#include "client/mpi/comm/comm.h"
#include "client/mpi/comm/rank_set.h"
#include "client/mpi/info/info.h"

namespace ferry::mpi {

class Call {
 public:
  // `name` with MPI_; it must live as long.
  explicit Call(const char* name) : name_(name) {}

  bool ok() const { return result_ == MPI_SUCCESS; }
  int result() const { return result_; }

  // The object of a handle; null after a failure. A communicator's error handler counts for what
  // follows.
  Comm* Find(MPI_Comm handle);
  Datatype* Find(MPI_Datatype handle);
  Group* Find(MPI_Group handle);
  Info* Find(MPI_Info handle);
  ErrorHandler* Find(MPI_Errhandler handle);
  // The same; null without a failure for MPI_INFO_NULL.
  Info* FindOrNull(MPI_Info handle);
  // An intracommunicator, or an intercommunicator; MPI_ERR_COMM for the other kind.
  Comm* FindIntra(MPI_Comm handle);
  Comm* FindInter(MPI_Comm handle);

  // Fails before MPI_Init and after MPI_Finalize.
  void NeedRunning();
  // MPI_ERR_ARG for a null pointer.
  void Need(const void* pointer, const char* argument);
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
  void Give(Ref<Comm> comm, MPI_Comm* handle);
  // The same, or refuses the failure.
  void Give(Result<Ref<Comm>> made, MPI_Comm* handle);

 private:
  const char* const name_;
  Comm* comm_ = nullptr;
  int result_ = MPI_SUCCESS;
};

}  // namespace ferry::mpi
