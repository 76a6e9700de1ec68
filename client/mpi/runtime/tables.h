// The tables from handles of this process to their objects, one for each kind.
//
// Calling thread: any.
#pragma once

#include <mpi.h>

#include "client/mpi/handle/handle_table.h"

namespace ferry::mpi {

class Comm;
class Datatype;
class ErrorHandler;
class Group;
class Info;
class MatchedMessage;
class Op;
class Request;

extern HandleTable<Comm, MPI_Comm> comms;
extern HandleTable<Datatype, MPI_Datatype> datatypes;
extern HandleTable<ErrorHandler, MPI_Errhandler> error_handlers;
extern HandleTable<Group, MPI_Group> groups;
extern HandleTable<Info, MPI_Info> infos;
extern HandleTable<MatchedMessage, MPI_Message> matched_messages;
extern HandleTable<Op, MPI_Op> ops;
extern HandleTable<Request, MPI_Request> requests;

}  // namespace ferry::mpi
