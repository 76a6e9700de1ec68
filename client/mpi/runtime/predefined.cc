#include "client/mpi/runtime/predefined.h"

#include <vector>

#include "client/mpi/comm/group.h"
#include "client/mpi/datatype/basic_type.h"
#include "client/mpi/datatype/datatype.h"
#include "client/mpi/error/error_handler.h"
#include "client/mpi/handle/object.h"
#include "client/mpi/op/op.h"
#include "client/mpi/runtime/tables.h"

namespace ferry::mpi {
namespace {

// Predefined objects are never freed: those that have no handle any more are kept here.
std::vector<Object*>& kept = *new std::vector<Object*>();

void MakeErrorHandlers() {
  error_handlers.SetPredefined(MPI_ERRORS_ARE_FATAL, new ErrorHandler(ErrorHandler::Kind::kFatal));
  error_handlers.SetPredefined(MPI_ERRORS_ABORT, new ErrorHandler(ErrorHandler::Kind::kAbort));
  error_handlers.SetPredefined(MPI_ERRORS_RETURN, new ErrorHandler(ErrorHandler::Kind::kReturn));
}

void MakeDatatypes() {
  for (const BasicType& basic : BasicTypes()) {
    auto* const datatype = new Datatype(basic);
    datatypes.SetPredefined(basic.handle, datatype);
  }
}

void MakeOps() {
  for (const PredefinedOp& op : PredefinedOps()) {
    ops.SetPredefined(op.handle, new Op(op.kind, op.handle, op.name));
  }
}

}  // namespace

void MakePredefined() {
  MakeErrorHandlers();
  groups.SetPredefined(MPI_GROUP_EMPTY, new Group(RankSet()));
  MakeDatatypes();
  MakeOps();
}

void ForgetPredefined() {
  for (const BasicType& basic : BasicTypes()) {
    kept.push_back(datatypes.Find(basic.handle));
    datatypes.SetPredefined(basic.handle, nullptr);
  }
  for (const PredefinedOp& op : PredefinedOps()) {
    kept.push_back(ops.Find(op.handle));
    ops.SetPredefined(op.handle, nullptr);
  }
}

}  // namespace ferry::mpi
