// Sends and receives at once: what MPI_Sendrecv and its kin share.
#pragma once

#include "client/mpi/api/message_arguments.h"

namespace ferry::mpi {

int Sendrecv(const MessageArguments& send, const MessageArguments& receive, MPI_Status* status);
int Isendrecv(const MessageArguments& send, const MessageArguments& receive, MPI_Request* request);
// The receive goes where the sent data lies.
int SendrecvReplace(const MessageArguments& original, const MessageArguments& receive,
                    MPI_Status* status);
int IsendrecvReplace(const MessageArguments& original, const MessageArguments& receive,
                     MPI_Request* request);

}  // namespace ferry::mpi
