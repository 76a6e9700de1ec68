// Messages: sends and receives of all modes, blocking, nonblocking and persistent (MPI 5.0,
// sections 3.2 to 3.9). Calls with _c differ in the type of their counts only.
#include "client/mpi/api/function.h"
#include "client/mpi/api/send_mode.h"

using ferry::mpi::SendMode;

// ---- Blocking -----------------------------------------------------------------------------------

FERRY_MPI_CALL(int, Send,
               (const void* buffer, int count, MPI_Datatype datatype, int destination, int tag,
                MPI_Comm comm)) {
  return ferry::mpi::BlockingSend({"MPI_Send", buffer, count, datatype, destination, tag, comm},
                                  SendMode::kStandard);
}

FERRY_MPI_CALL(int, Send_c,
               (const void* buffer, MPI_Count count, MPI_Datatype datatype, int destination,
                int tag, MPI_Comm comm)) {
  return ferry::mpi::BlockingSend({"MPI_Send_c", buffer, count, datatype, destination, tag, comm},
                                  SendMode::kStandard);
}

FERRY_MPI_CALL(int, Bsend,
               (const void* buffer, int count, MPI_Datatype datatype, int destination, int tag,
                MPI_Comm comm)) {
  return ferry::mpi::BlockingSend({"MPI_Bsend", buffer, count, datatype, destination, tag, comm},
                                  SendMode::kBuffered);
}

FERRY_MPI_CALL(int, Bsend_c,
               (const void* buffer, MPI_Count count, MPI_Datatype datatype, int destination,
                int tag, MPI_Comm comm)) {
  return ferry::mpi::BlockingSend({"MPI_Bsend_c", buffer, count, datatype, destination, tag, comm},
                                  SendMode::kBuffered);
}

FERRY_MPI_CALL(int, Rsend,
               (const void* buffer, int count, MPI_Datatype datatype, int destination, int tag,
                MPI_Comm comm)) {
  return ferry::mpi::BlockingSend({"MPI_Rsend", buffer, count, datatype, destination, tag, comm},
                                  SendMode::kStandard);
}

FERRY_MPI_CALL(int, Rsend_c,
               (const void* buffer, MPI_Count count, MPI_Datatype datatype, int destination,
                int tag, MPI_Comm comm)) {
  return ferry::mpi::BlockingSend({"MPI_Rsend_c", buffer, count, datatype, destination, tag, comm},
                                  SendMode::kStandard);
}

FERRY_MPI_CALL(int, Ssend,
               (const void* buffer, int count, MPI_Datatype datatype, int destination, int tag,
                MPI_Comm comm)) {
  return ferry::mpi::BlockingSend({"MPI_Ssend", buffer, count, datatype, destination, tag, comm},
                                  SendMode::kSynchronous);
}

FERRY_MPI_CALL(int, Ssend_c,
               (const void* buffer, MPI_Count count, MPI_Datatype datatype, int destination,
                int tag, MPI_Comm comm)) {
  return ferry::mpi::BlockingSend({"MPI_Ssend_c", buffer, count, datatype, destination, tag, comm},
                                  SendMode::kSynchronous);
}

FERRY_MPI_CALL(int, Recv,
               (void* buffer, int count, MPI_Datatype datatype, int source, int tag, MPI_Comm comm,
                MPI_Status* status)) {
  return ferry::mpi::BlockingReceive({"MPI_Recv", buffer, count, datatype, source, tag, comm},
                                     status);
}

FERRY_MPI_CALL(int, Recv_c,
               (void* buffer, MPI_Count count, MPI_Datatype datatype, int source, int tag,
                MPI_Comm comm, MPI_Status* status)) {
  return ferry::mpi::BlockingReceive({"MPI_Recv_c", buffer, count, datatype, source, tag, comm},
                                     status);
}

// ---- Nonblocking --------------------------------------------------------------------------------

FERRY_MPI_CALL(int, Isend,
               (const void* buffer, int count, MPI_Datatype datatype, int destination, int tag,
                MPI_Comm comm, MPI_Request* request)) {
  return ferry::mpi::BeginSend({"MPI_Isend", buffer, count, datatype, destination, tag, comm},
                               SendMode::kStandard, request);
}

FERRY_MPI_CALL(int, Isend_c,
               (const void* buffer, MPI_Count count, MPI_Datatype datatype, int destination,
                int tag, MPI_Comm comm, MPI_Request* request)) {
  return ferry::mpi::BeginSend({"MPI_Isend_c", buffer, count, datatype, destination, tag, comm},
                               SendMode::kStandard, request);
}

FERRY_MPI_CALL(int, Ibsend,
               (const void* buffer, int count, MPI_Datatype datatype, int destination, int tag,
                MPI_Comm comm, MPI_Request* request)) {
  return ferry::mpi::BeginSend({"MPI_Ibsend", buffer, count, datatype, destination, tag, comm},
                               SendMode::kBuffered, request);
}

FERRY_MPI_CALL(int, Ibsend_c,
               (const void* buffer, MPI_Count count, MPI_Datatype datatype, int destination,
                int tag, MPI_Comm comm, MPI_Request* request)) {
  return ferry::mpi::BeginSend({"MPI_Ibsend_c", buffer, count, datatype, destination, tag, comm},
                               SendMode::kBuffered, request);
}

FERRY_MPI_CALL(int, Irsend,
               (const void* buffer, int count, MPI_Datatype datatype, int destination, int tag,
                MPI_Comm comm, MPI_Request* request)) {
  return ferry::mpi::BeginSend({"MPI_Irsend", buffer, count, datatype, destination, tag, comm},
                               SendMode::kStandard, request);
}

FERRY_MPI_CALL(int, Irsend_c,
               (const void* buffer, MPI_Count count, MPI_Datatype datatype, int destination,
                int tag, MPI_Comm comm, MPI_Request* request)) {
  return ferry::mpi::BeginSend({"MPI_Irsend_c", buffer, count, datatype, destination, tag, comm},
                               SendMode::kStandard, request);
}

FERRY_MPI_CALL(int, Issend,
               (const void* buffer, int count, MPI_Datatype datatype, int destination, int tag,
                MPI_Comm comm, MPI_Request* request)) {
  return ferry::mpi::BeginSend({"MPI_Issend", buffer, count, datatype, destination, tag, comm},
                               SendMode::kSynchronous, request);
}

FERRY_MPI_CALL(int, Issend_c,
               (const void* buffer, MPI_Count count, MPI_Datatype datatype, int destination,
                int tag, MPI_Comm comm, MPI_Request* request)) {
  return ferry::mpi::BeginSend({"MPI_Issend_c", buffer, count, datatype, destination, tag, comm},
                               SendMode::kSynchronous, request);
}

FERRY_MPI_CALL(int, Irecv,
               (void* buffer, int count, MPI_Datatype datatype, int source, int tag, MPI_Comm comm,
                MPI_Request* request)) {
  return ferry::mpi::BeginReceive({"MPI_Irecv", buffer, count, datatype, source, tag, comm},
                                  request);
}

FERRY_MPI_CALL(int, Irecv_c,
               (void* buffer, MPI_Count count, MPI_Datatype datatype, int source, int tag,
                MPI_Comm comm, MPI_Request* request)) {
  return ferry::mpi::BeginReceive({"MPI_Irecv_c", buffer, count, datatype, source, tag, comm},
                                  request);
}

// ---- Persistent ---------------------------------------------------------------------------------

FERRY_MPI_CALL(int, Send_init,
               (const void* buffer, int count, MPI_Datatype datatype, int destination, int tag,
                MPI_Comm comm, MPI_Request* request)) {
  return ferry::mpi::MakeSend({"MPI_Send_init", buffer, count, datatype, destination, tag, comm},
                              SendMode::kStandard, request);
}

FERRY_MPI_CALL(int, Send_init_c,
               (const void* buffer, MPI_Count count, MPI_Datatype datatype, int destination,
                int tag, MPI_Comm comm, MPI_Request* request)) {
  return ferry::mpi::MakeSend({"MPI_Send_init_c", buffer, count, datatype, destination, tag, comm},
                              SendMode::kStandard, request);
}

FERRY_MPI_CALL(int, Bsend_init,
               (const void* buffer, int count, MPI_Datatype datatype, int destination, int tag,
                MPI_Comm comm, MPI_Request* request)) {
  return ferry::mpi::MakeSend({"MPI_Bsend_init", buffer, count, datatype, destination, tag, comm},
                              SendMode::kBuffered, request);
}

FERRY_MPI_CALL(int, Bsend_init_c,
               (const void* buffer, MPI_Count count, MPI_Datatype datatype, int destination,
                int tag, MPI_Comm comm, MPI_Request* request)) {
  return ferry::mpi::MakeSend({"MPI_Bsend_init_c", buffer, count, datatype, destination, tag, comm},
                              SendMode::kBuffered, request);
}

FERRY_MPI_CALL(int, Rsend_init,
               (const void* buffer, int count, MPI_Datatype datatype, int destination, int tag,
                MPI_Comm comm, MPI_Request* request)) {
  return ferry::mpi::MakeSend({"MPI_Rsend_init", buffer, count, datatype, destination, tag, comm},
                              SendMode::kStandard, request);
}

FERRY_MPI_CALL(int, Rsend_init_c,
               (const void* buffer, MPI_Count count, MPI_Datatype datatype, int destination,
                int tag, MPI_Comm comm, MPI_Request* request)) {
  return ferry::mpi::MakeSend({"MPI_Rsend_init_c", buffer, count, datatype, destination, tag, comm},
                              SendMode::kStandard, request);
}

FERRY_MPI_CALL(int, Ssend_init,
               (const void* buffer, int count, MPI_Datatype datatype, int destination, int tag,
                MPI_Comm comm, MPI_Request* request)) {
  return ferry::mpi::MakeSend({"MPI_Ssend_init", buffer, count, datatype, destination, tag, comm},
                              SendMode::kSynchronous, request);
}

FERRY_MPI_CALL(int, Ssend_init_c,
               (const void* buffer, MPI_Count count, MPI_Datatype datatype, int destination,
                int tag, MPI_Comm comm, MPI_Request* request)) {
  return ferry::mpi::MakeSend({"MPI_Ssend_init_c", buffer, count, datatype, destination, tag, comm},
                              SendMode::kSynchronous, request);
}

FERRY_MPI_CALL(int, Recv_init,
               (void* buffer, int count, MPI_Datatype datatype, int source, int tag, MPI_Comm comm,
                MPI_Request* request)) {
  return ferry::mpi::MakeReceive({"MPI_Recv_init", buffer, count, datatype, source, tag, comm},
                                 request);
}

FERRY_MPI_CALL(int, Recv_init_c,
               (void* buffer, MPI_Count count, MPI_Datatype datatype, int source, int tag,
                MPI_Comm comm, MPI_Request* request)) {
  return ferry::mpi::MakeReceive({"MPI_Recv_init_c", buffer, count, datatype, source, tag, comm},
                                 request);
}
