// The four ways to send (MPI 5.0, section 3.4), for all forms of calls alike.
#pragma once

#include <cstdint>

#include "client/mpi/api/message_arguments.h"
#include "client/mpi/request/request.h"

namespace ferry::mpi {

// A ready send is like a standard one, except for persistent requests that are matched (mpix.h).
// For others nothing is saved by knowing that the receive is there: Ferry finds out by itself.
enum class SendMode : uint8_t { kStandard, kBuffered, kSynchronous, kReady };

int BlockingSend(const MessageArguments& arguments, SendMode mode);
int BlockingReceive(const MessageArguments& arguments, MPI_Status* status);
int BeginSend(const MessageArguments& arguments, SendMode mode, MPI_Request* request);
int BeginReceive(const MessageArguments& arguments, MPI_Request* request);
int MakeSend(const MessageArguments& arguments, SendMode mode, MPI_Request* request);
int MakeReceive(const MessageArguments& arguments, MPI_Request* request);

// The same for calls that consist of several messages: without a handle. Null: to or from
// MPI_PROC_NULL, or complete already.
int BeginSend(const MessageArguments& arguments, Ref<Request>* request);
int BeginReceive(const MessageArguments& arguments, Ref<Request>* request);

}  // namespace ferry::mpi
