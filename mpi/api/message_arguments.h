// Checks the arguments that every message has, and finds their objects.
//
// Calling thread: the caller's.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>

#include "client/api/front_end.h"
#include "mpi/base/connection.h"
#include "mpi/base/handle_table.h"
#include "mpi/comm/call_notes.h"
#include "mpi/comm/comm.h"
#include "mpi/datatype/datatype.h"
#include "mpi/init/fail.h"
#include "mpi/p2p/payload.h"
#include "mpi/p2p/request.h"

namespace ferry::mpi {

struct MessageArguments {
  const char* call;  // the function's name, for messages
  const void* buffer;
  int64_t count;
  MPI_Datatype datatype;
  int peer;  // destination or source
  int tag;
  MPI_Comm comm;
};

// The objects and values that the arguments stand for.
struct Envelope {
  Comm* comm = nullptr;
  const Datatype* type = nullptr;
  bool is_null = false;     // the peer is MPI_PROC_NULL
  client::Message message;  // without buffer and size
};

// Finds the error in the arguments; MPI_SUCCESS if they are unusual, but right. Called by Resolve.
int FailMessage(const MessageArguments& arguments, bool is_send);

// Addresses below are no buffers: null, MPI_IN_PLACE and their like, or one of these with a small
// displacement.
inline constexpr uintptr_t kLowestBuffer = 4096;

// The largest count that needs no closer check: with any type below 2 GiB, the bytes of so many
// elements fit into 63 bits.
inline constexpr int64_t kPlainCount = int64_t{1} << 31;

// Fails unless `count` elements of a committed type may lie at `buffer`.
Failure CheckDataClosely(const void* buffer, int64_t count, const Datatype& type);
inline Failure CheckData(const void* buffer, int64_t count, const Datatype& type) {
  const bool is_plain = type.IsCommitted() && static_cast<uint64_t>(count) <= kPlainCount &&
                        type.size_bytes() <= kPlainCount &&
                        reinterpret_cast<uintptr_t>(buffer) >= kLowestBuffer && type.IsDense(count);
  return is_plain ? Failure() : CheckDataClosely(buffer, count, type);
}

// Checks the arguments and fills in the envelope. Returns MPI_SUCCESS, or the error that the call
// is to return. Inlined everywhere: `is_send` decides half of it, and the envelope would be copied
// back and forth otherwise.
[[gnu::always_inline]] inline int Resolve(const MessageArguments& arguments, bool is_send,
                                          Envelope* envelope) {
  Comm* const comm = comms.Find(arguments.comm);
  const Datatype* type = datatypes.Find(arguments.datatype);
  const bool any_source = !is_send && arguments.peer == MPI_ANY_SOURCE;
  const bool any_tag = !is_send && arguments.tag == MPI_ANY_TAG;
  envelope->is_null = arguments.peer == MPI_PROC_NULL;
  if (comm == nullptr || type == nullptr || !type->IsCommitted() ||
      static_cast<uint64_t>(arguments.count) > kPlainCount || type->size_bytes() > kPlainCount ||
      !(comm->IsPeer(arguments.peer) || any_source || envelope->is_null) ||
      !(static_cast<unsigned>(arguments.tag) <= static_cast<unsigned>(kTagMax) || any_tag) ||
      (reinterpret_cast<uintptr_t>(arguments.buffer) < kLowestBuffer &&
       arguments.count * type->size_bytes() != 0)) [[unlikely]] {
    FERRY_RETURN_ERROR(FailMessage(arguments, is_send));
    if (type == nullptr) {  // to or from MPI_PROC_NULL, where nothing is moved
      type = datatypes.Find(MPI_BYTE);
    }
  }
  envelope->comm = comm;
  envelope->type = type;
  envelope->message.peer = any_source          ? client::kAny
                           : envelope->is_null ? 0
                                               : comm->WorldRank(arguments.peer);
  envelope->message.tag = any_tag ? client::kAny : arguments.tag;
  envelope->message.context = comm->context();
  return MPI_SUCCESS;
}

// A call that waits for a message, for those who look at the rank. Both arguments outlive it.
struct MessageNote : client::CallNote {
  MessageNote(const MessageArguments& arguments, const Envelope& envelope)
      : CallNote(&DescribeIt), arguments(arguments), envelope(envelope) {}

  const MessageArguments& arguments;
  const Envelope& envelope;

 private:
  static void DescribeIt(const CallNote& note, shm::CallDescription* description);
};

// The program's memory itself is what is moved: nothing to pack.
inline void SetDense(const MessageArguments& arguments, Envelope* envelope) {
  client::Message& message = envelope->message;
  message.buffer = const_cast<std::byte*>(static_cast<const std::byte*>(arguments.buffer)) +
                   envelope->type->true_lower_bound();
  message.size_bytes =
      static_cast<uint64_t>(arguments.count) * static_cast<uint64_t>(envelope->type->size_bytes());
}

inline Payload PayloadOf(const MessageArguments& arguments, const Envelope& envelope) {
  return Payload(const_cast<void*>(arguments.buffer), arguments.count, *envelope.type);
}

// Resolves only the buffer, count and datatype of a message of `comm`. Returns as Resolve does.
int ResolveData(const MessageArguments& arguments, Comm& comm, Envelope* envelope);
// Resolves the arguments of a probe, which has no buffer. Returns as Resolve does.
int ResolveProbe(const char* call, int source, int tag, MPI_Comm comm, Envelope* envelope);

// Receives data that are dense or short (ShortPacked), and waits. Returns what the call is to
// return.
int ReceiveNoRequest(const MessageArguments& arguments, Envelope& envelope, MPI_Status* status);

// Start a message, without a handle, for calls that consist of several. A null *request: it goes to
// or comes from MPI_PROC_NULL, or is complete already.
int BeginSend(const MessageArguments& arguments, Ref<Request>* request);
int BeginReceive(const MessageArguments& arguments, Ref<Request>* request);

}  // namespace ferry::mpi
