// Messages: sends and receives of all modes, blocking, nonblocking and persistent (MPI 5.0,
// sections 3.2 to 3.9).
#include "client/mpi/api/function.h"
#include "client/mpi/api/message_arguments.h"

namespace ferry::mpi {

#define FERRY_SEND \
  const void *buffer, Count count, MPI_Datatype datatype, int destination, int tag, MPI_Comm comm
#define FERRY_SENT \
  { FERRY_MPI_NAME, buffer, count, datatype, destination, tag, comm }
#define FERRY_RECEIVE \
  void *buffer, Count count, MPI_Datatype datatype, int source, int tag, MPI_Comm comm
#define FERRY_RECEIVED \
  { FERRY_MPI_NAME, buffer, count, datatype, source, tag, comm }

// ---- Blocking -----------------------------------------------------------------------------------

FERRY_MPI_TWINS(Send, (FERRY_SEND), BlockingSend(FERRY_SENT, SendMode::kStandard));
FERRY_MPI_TWINS(Bsend, (FERRY_SEND), BlockingSend(FERRY_SENT, SendMode::kBuffered));
FERRY_MPI_TWINS(Rsend, (FERRY_SEND), BlockingSend(FERRY_SENT, SendMode::kStandard));
FERRY_MPI_TWINS(Ssend, (FERRY_SEND), BlockingSend(FERRY_SENT, SendMode::kSynchronous));
FERRY_MPI_TWINS(Recv, (FERRY_RECEIVE, MPI_Status* status), BlockingReceive(FERRY_RECEIVED, status));

// ---- Nonblocking --------------------------------------------------------------------------------

FERRY_MPI_TWINS(Isend, (FERRY_SEND, MPI_Request* request),
                BeginSend(FERRY_SENT, SendMode::kStandard, request));
FERRY_MPI_TWINS(Ibsend, (FERRY_SEND, MPI_Request* request),
                BeginSend(FERRY_SENT, SendMode::kBuffered, request));
FERRY_MPI_TWINS(Irsend, (FERRY_SEND, MPI_Request* request),
                BeginSend(FERRY_SENT, SendMode::kStandard, request));
FERRY_MPI_TWINS(Issend, (FERRY_SEND, MPI_Request* request),
                BeginSend(FERRY_SENT, SendMode::kSynchronous, request));
FERRY_MPI_TWINS(Irecv, (FERRY_RECEIVE, MPI_Request* request),
                BeginReceive(FERRY_RECEIVED, request));

// ---- Persistent ---------------------------------------------------------------------------------

FERRY_MPI_TWINS(Send_init, (FERRY_SEND, MPI_Request* request),
                MakeSend(FERRY_SENT, SendMode::kStandard, request));
FERRY_MPI_TWINS(Bsend_init, (FERRY_SEND, MPI_Request* request),
                MakeSend(FERRY_SENT, SendMode::kBuffered, request));
FERRY_MPI_TWINS(Rsend_init, (FERRY_SEND, MPI_Request* request),
                MakeSend(FERRY_SENT, SendMode::kStandard, request));
FERRY_MPI_TWINS(Ssend_init, (FERRY_SEND, MPI_Request* request),
                MakeSend(FERRY_SENT, SendMode::kSynchronous, request));
FERRY_MPI_TWINS(Recv_init, (FERRY_RECEIVE, MPI_Request* request),
                MakeReceive(FERRY_RECEIVED, request));

}  // namespace ferry::mpi
