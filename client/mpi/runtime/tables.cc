#include "client/mpi/runtime/tables.h"

namespace ferry::mpi {

// Initialised before any constructor runs: a program may call MPI from one.
constinit HandleTable<Comm, MPI_Comm> comms;
constinit HandleTable<Datatype, MPI_Datatype> datatypes;
constinit HandleTable<ErrorHandler, MPI_Errhandler> error_handlers;
constinit HandleTable<Group, MPI_Group> groups;
constinit HandleTable<Info, MPI_Info> infos;
constinit HandleTable<MatchedMessage, MPI_Message> matched_messages;
constinit HandleTable<Op, MPI_Op> ops;
constinit HandleTable<Request, MPI_Request> requests;

}  // namespace ferry::mpi
