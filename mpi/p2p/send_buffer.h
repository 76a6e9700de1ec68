// Buffered sends (MPI 5.0, section 3.6): the message is copied and the call is over.
//
// The buffer that a program attaches only says how much may wait: the copies themselves are Ferry's
// own memory, so that they can be released one by one. Each costs its size and MPI_BSEND_OVERHEAD
// of what was attached, until it has left.
//
// Calling thread: any.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>

#include "client/api/front_end.h"
#include "mpi/base/session.h"
#include "mpi/comm/comm.h"
#include "mpi/datatype/datatype.h"
#include "mpi/p2p/payload.h"
#include "mpi/p2p/request.h"

namespace ferry::mpi {

// Whose buffer it is. A program has one of its own for the process, and may have one for a session
// and one for a communicator. A message takes that of its communicator, else that of the
// communicator's session, else that of the process (MPI 5.0, section 3.6).
class BufferOwner {
 public:
  BufferOwner(std::nullptr_t) {}  // NOLINT: implicit, as the owners are; the process
  BufferOwner(const Comm* comm) : key_(comm->context()) {}  // NOLINT
  BufferOwner(const Session* session)                       // NOLINT
      : key_((uint64_t{1} << 32) | session->number) {}

  // No other owner has it. Contexts have 32 bits; no communicator's is 0.
  uint64_t key() const { return key_; }

 private:
  uint64_t key_ = 0;
};

// MPI_ERR_BUFFER: there is one already. `buffer` may be MPI_BUFFER_AUTOMATIC: no limit.
Failure AttachBuffer(BufferOwner owner, void* buffer, int64_t size_bytes);
// Waits until its messages have left, then says what was attached. Blocks. MPI_ERR_BUFFER: none.
Failure DetachBuffer(BufferOwner owner, void** buffer, int64_t* size_bytes);
// Waits until all messages have left. Blocks. No error if nothing is attached.
Failure FlushBuffer(BufferOwner owner);
// For a communicator that the program frees, or a session that it ends: detaches its buffer, if
// any, once its messages have left. Does not wait for them.
void FreeBuffer(BufferOwner owner);
// At the end of MPI: waits until the messages of all buffers have left, those of freed
// communicators too. Blocks.
void FlushAllBuffers();
// Flushes one without waiting: a request for it.
Ref<Request> BeginFlush(BufferOwner owner);

// MPI_ERR_BUFFER: nothing is attached, or too much of it is in use.
Failure BufferedSend(Comm& comm, Payload payload, client::Message message);
// A persistent one.
Ref<Request> MakeBufferedSend(Comm& comm, const void* buffer, int64_t count, const Datatype& type,
                              client::Message message, bool null);

}  // namespace ferry::mpi
