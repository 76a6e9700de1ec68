// Buffered sends (MPI 5.0, section 3.6): the message is copied and the call is over.
//
// The buffer that a program attaches only says how much may wait: the copies themselves are in
// Ferry's own memory, so that they can be released one by one. Each uses its size and
// MPI_BSEND_OVERHEAD of the attached size, until it has left.
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

// The owner of a buffer. A program has one buffer for the process, and may have one for a session
// and one for a communicator. A message uses the buffer of its communicator, else that of the
// communicator's session, else that of the process (MPI 5.0, section 3.6).
class BufferOwner {
 public:
  BufferOwner(std::nullptr_t) {}  // NOLINT: implicit, as the owners are; the process
  BufferOwner(const Comm* comm) : key_(comm->context()) {}  // NOLINT
  BufferOwner(const Session* session)                       // NOLINT
      : key_((uint64_t{1} << 32) | session->number) {}

  // A number that no other owner has. Contexts have 32 bits; no communicator's is 0.
  uint64_t key() const { return key_; }

 private:
  uint64_t key_ = 0;
};

// Attaches a buffer to its owner. `buffer` may be MPI_BUFFER_AUTOMATIC: no limit. MPI_ERR_BUFFER:
// the owner has one already.
Failure AttachBuffer(BufferOwner owner, void* buffer, int64_t size_bytes);
// Waits until the buffer's messages have left, then returns the buffer as it was attached. Blocks.
// MPI_ERR_BUFFER: the owner has none.
Failure DetachBuffer(BufferOwner owner, void** buffer, int64_t* size_bytes);
// Waits until all messages have left. Blocks. No error if nothing is attached.
Failure FlushBuffer(BufferOwner owner);
// Detaches the buffer, if any, of a communicator that the program frees, or of a session that it
// ends, once the buffer's messages have left. Does not wait for them.
void FreeBuffer(BufferOwner owner);
// Waits, at the end of MPI, until the messages of all buffers have left, those of freed
// communicators too. Blocks.
void FlushAllBuffers();
// Flushes a buffer without waiting: returns a request that completes once its messages have left.
Ref<Request> BeginFlush(BufferOwner owner);

// Copies the message, and starts to send it. MPI_ERR_BUFFER: nothing is attached, or too much of it
// is in use.
Failure BufferedSend(Comm& comm, Payload payload, client::Message message);
// Makes a persistent buffered send.
Ref<Request> MakeBufferedSend(Comm& comm, const void* buffer, int64_t count, const Datatype& type,
                              client::Message message, bool null);

}  // namespace ferry::mpi
