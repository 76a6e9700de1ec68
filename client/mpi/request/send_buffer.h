// Buffered sends (MPI 5.0, section 3.6): the message is copied and the call is over.
//
// The buffer that a program attaches only says how much may wait: the copies themselves are Ferry's
// own memory, so that they can be released one by one. Each costs its size and MPI_BSEND_OVERHEAD
// of what was attached, until it has left.
//
// Calling thread: any.
#pragma once

#include <mpi.h>

#include <cstdint>

#include "client/core/front_end.h"
#include "client/mpi/comm/comm.h"
#include "client/mpi/datatype/datatype.h"
#include "client/mpi/request/payload.h"
#include "client/mpi/request/request.h"

namespace ferry::mpi {

// A program has one buffer of its own for the process, and may have one for a communicator, which
// then counts alone (MPI 5.0, section 3.6). `comm` null: the process'.
// MPI_ERR_BUFFER: there is one already. `buffer` may be MPI_BUFFER_AUTOMATIC: no limit.
Failure AttachBuffer(Comm* comm, void* buffer, int64_t size_bytes);
// Waits until its messages have left, then says what was attached. Blocks. MPI_ERR_BUFFER: none.
Failure DetachBuffer(Comm* comm, void** buffer, int64_t* size_bytes);
// Waits until all messages have left. Blocks. No error if nothing is attached.
Failure FlushBuffer(Comm* comm);
// For a communicator that the program frees: detaches its buffer, if any, once its messages have
// left. Does not wait for them.
void FreeBuffer(Comm& comm);
// At the end of MPI: waits until the messages of all buffers have left, those of freed
// communicators too. Blocks.
void FlushAllBuffers();
// Flushes one without waiting: a request for it.
Ref<Request> BeginFlush(Comm* comm);

// MPI_ERR_BUFFER: nothing is attached, or too much of it is in use.
Failure BufferedSend(Comm& comm, Payload payload, client::Message message);
// A persistent one.
Ref<Request> MakeBufferedSend(Comm& comm, const void* buffer, int64_t count, const Datatype& type,
                              client::Message message, bool null);

}  // namespace ferry::mpi
