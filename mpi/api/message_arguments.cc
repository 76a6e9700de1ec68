#include "mpi/api/message_arguments.h"

#include <string>

#include "mpi/init/fail.h"

namespace ferry::mpi {
namespace {

Failure CheckPeer(const Comm& comm, int peer, bool is_send) {
  if (comm.IsPeer(peer) || peer == MPI_PROC_NULL || (!is_send && peer == MPI_ANY_SOURCE)) {
    return {};
  }
  std::string text = is_send ? "the destination " : "the source ";
  if (is_send && peer == MPI_ANY_SOURCE) {
    text += "is MPI_ANY_SOURCE, which only receives may name";
  } else {
    text += std::to_string(peer) + " is no rank of " +
            (comm.is_inter() ? "the remote group of " : "") +
            "the communicator, which has ranks 0 to " + std::to_string(comm.peers().size() - 1);
  }
  return {MPI_ERR_RANK, text};
}

Failure CheckTag(int tag, bool is_send) {
  if ((tag >= 0 && tag <= kTagMax) || (!is_send && tag == MPI_ANY_TAG)) {
    return {};
  }
  return {MPI_ERR_TAG, is_send && tag == MPI_ANY_TAG
                           ? "the tag is MPI_ANY_TAG, which only receives may name"
                           : "the tag " + std::to_string(tag) + " is not between 0 and " +
                                 std::to_string(kTagMax) + " (MPI_TAG_UB)"};
}

// To and from MPI_PROC_NULL nothing is moved: there MPI_DATATYPE_NULL will do.
const Datatype* FindType(const MessageArguments& arguments) {
  const bool is_none = arguments.peer == MPI_PROC_NULL && arguments.datatype == MPI_DATATYPE_NULL;
  return datatypes.Find(is_none ? MPI_BYTE : arguments.datatype);
}

}  // namespace

Failure CheckDataClosely(const void* buffer, int64_t count, const Datatype& type) {
  if (count < 0) {
    return {MPI_ERR_COUNT, "the count is " + std::to_string(count)};
  }
  if (!type.IsCommitted()) {
    return {MPI_ERR_TYPE, type.Text() + " is not committed; call MPI_Type_commit first"};
  }
  const Result<int64_t> bytes = type.PackedBytes(count);
  if (!bytes.ok()) {
    return bytes.failure();
  }
  const auto first =
      reinterpret_cast<uintptr_t>(buffer) + static_cast<uintptr_t>(type.Span(count).low);
  if (bytes.value() != 0 && first < kLowestBuffer) {
    return {MPI_ERR_BUFFER, buffer == nullptr
                                ? "the buffer is null, but the message has " +
                                      std::to_string(bytes.value()) + " bytes"
                                : "the buffer is MPI_IN_PLACE or another address that is none"};
  }
  return {};
}

int FailMessage(const MessageArguments& arguments, bool is_send) {
  Comm* const comm = comms.Find(arguments.comm);
  if (comm == nullptr) {
    return FailComm(arguments.call, arguments.comm);
  }
  const Datatype* const type = FindType(arguments);
  if (type == nullptr) {
    return FailHandle(arguments.call, comm, MPI_ERR_TYPE, "MPI_Datatype", arguments.datatype);
  }
  Failure failure = CheckPeer(*comm, arguments.peer, is_send);
  if (failure.ok()) {
    failure = CheckTag(arguments.tag, is_send);
  }
  if (failure.ok()) {
    failure = CheckData(arguments.buffer, arguments.count, *type);
  }
  return Conclude(arguments.call, comm, failure);
}

int ResolveData(const MessageArguments& arguments, Comm& comm, Envelope* envelope) {
  envelope->comm = &comm;
  envelope->type = FindType(arguments);
  if (envelope->type == nullptr) {
    return FailHandle(arguments.call, &comm, MPI_ERR_TYPE, "MPI_Datatype", arguments.datatype);
  }
  return Conclude(arguments.call, &comm,
                  CheckData(arguments.buffer, arguments.count, *envelope->type));
}

int ResolveProbe(const char* call, int source, int tag, MPI_Comm comm, Envelope* envelope) {
  return Resolve({call, nullptr, 0, MPI_BYTE, source, tag, comm}, false, envelope);
}

// ---- For those who look at the rank -------------------------------------------------------------

void MessageNote::DescribeIt(const CallNote& note, shm::CallDescription* description) {
  const MessageArguments& arguments = static_cast<const MessageNote&>(note).arguments;
  const Envelope& envelope = static_cast<const MessageNote&>(note).envelope;
  description->name = client::CallOf(arguments.call);
  DescribeComm(*envelope.comm, description);
  DescribeWorldPeer(envelope.comm, envelope.message.peer, description);
  DescribeTag(envelope.message.tag, description);
  if (arguments.datatype != MPI_DATATYPE_NULL) {  // a probe has none
    DescribeBytes(static_cast<uint64_t>(arguments.count * envelope.type->size_bytes()),
                  description);
  }
}

}  // namespace ferry::mpi
