// Buffers for buffered sends (MPI 5.0, section 3.6).
#include <climits>
#include <cstring>

#include "client/mpi/api/function.h"
#include "client/mpi/base/handle_table.h"
#include "client/mpi/request/send_buffer.h"
#include "client/mpi/runtime/fail.h"

namespace ferry::mpi {
namespace {

// The communicator of a call that names one, else null. False: it does not exist.
struct Target {
  const char* call;
  Comm* comm = nullptr;
};

int Attach(const Target& target, void* buffer, int64_t size) {
  if (const int error = CheckRunning(target.call); error != MPI_SUCCESS) {
    return error;
  }
  const Failure failure = AttachBuffer(target.comm, buffer, size);
  return failure.ok() ? MPI_SUCCESS : Fail(target.call, target.comm, failure);
}

template <typename Size>
int Detach(const Target& target, void* address, Size* size) {
  if (const int error = CheckRunning(target.call); error != MPI_SUCCESS) {
    return error;
  }
  if (address == nullptr || size == nullptr) {
    return Fail(target.call, target.comm, MPI_ERR_ARG, "the address for a result is null");
  }
  void* buffer = nullptr;
  int64_t bytes = 0;
  if (const Failure failure = DetachBuffer(target.comm, &buffer, &bytes); !failure.ok()) {
    return Fail(target.call, target.comm, failure);
  }
  std::memcpy(address, &buffer, sizeof(buffer));
  *size = static_cast<Size>(bytes);
  return MPI_SUCCESS;
}

int FlushAll(const Target& target) {
  if (const int error = CheckRunning(target.call); error != MPI_SUCCESS) {
    return error;
  }
  const Failure failure = FlushBuffer(target.comm);
  return failure.ok() ? MPI_SUCCESS : Fail(target.call, target.comm, failure);
}

int Iflush(const Target& target, MPI_Request* request) {
  if (const int error = CheckRunning(target.call); error != MPI_SUCCESS) {
    return error;
  }
  if (request == nullptr) {
    return Fail(target.call, target.comm, MPI_ERR_ARG, "the address for the request is null");
  }
  *request = BeginFlush(target.comm).Leave()->Publish();
  return MPI_SUCCESS;
}

// Calls `use` with the communicator that the handle stands for.
template <typename Use>
int WithComm(const char* call, MPI_Comm handle, Use&& use) {
  Comm* const comm = comms.Find(handle);
  return comm == nullptr ? FailComm(call, handle) : use(Target{call, comm});
}

}  // namespace
}  // namespace ferry::mpi

using namespace ferry::mpi;  // NOLINT: the functions below are of no namespace

FERRY_MPI_CALL(int, Buffer_attach, (void* buffer, int size)) {
  return Attach({"MPI_Buffer_attach"}, buffer, size);
}
FERRY_MPI_CALL(int, Buffer_attach_c, (void* buffer, MPI_Count size)) {
  return Attach({"MPI_Buffer_attach_c"}, buffer, size);
}
FERRY_MPI_CALL(int, Buffer_detach, (void* address, int* size)) {
  return Detach({"MPI_Buffer_detach"}, address, size);
}
FERRY_MPI_CALL(int, Buffer_detach_c, (void* address, MPI_Count* size)) {
  return Detach({"MPI_Buffer_detach_c"}, address, size);
}
FERRY_MPI_CALL(int, Buffer_flush, (void)) { return FlushAll({"MPI_Buffer_flush"}); }
FERRY_MPI_CALL(int, Buffer_iflush, (MPI_Request * request)) {
  return Iflush({"MPI_Buffer_iflush"}, request);
}
FERRY_MPI_CALL(int, Comm_attach_buffer, (MPI_Comm comm, void* buffer, int size)) {
  return WithComm("MPI_Comm_attach_buffer", comm,
                  [&](const Target& target) { return Attach(target, buffer, size); });
}
FERRY_MPI_CALL(int, Comm_attach_buffer_c, (MPI_Comm comm, void* buffer, MPI_Count size)) {
  return WithComm("MPI_Comm_attach_buffer_c", comm,
                  [&](const Target& target) { return Attach(target, buffer, size); });
}
FERRY_MPI_CALL(int, Comm_detach_buffer, (MPI_Comm comm, void* address, int* size)) {
  return WithComm("MPI_Comm_detach_buffer", comm,
                  [&](const Target& target) { return Detach(target, address, size); });
}
FERRY_MPI_CALL(int, Comm_detach_buffer_c, (MPI_Comm comm, void* address, MPI_Count* size)) {
  return WithComm("MPI_Comm_detach_buffer_c", comm,
                  [&](const Target& target) { return Detach(target, address, size); });
}
FERRY_MPI_CALL(int, Comm_flush_buffer, (MPI_Comm comm)) {
  return WithComm("MPI_Comm_flush_buffer", comm, &FlushAll);
}
FERRY_MPI_CALL(int, Comm_iflush_buffer, (MPI_Comm comm, MPI_Request* request)) {
  return WithComm("MPI_Comm_iflush_buffer", comm,
                  [&](const Target& target) { return Iflush(target, request); });
}
