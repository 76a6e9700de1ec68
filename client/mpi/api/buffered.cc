// Buffers for buffered sends (MPI 5.0, section 3.6).
#include <cstring>

#include "client/mpi/api/call.h"
#include "client/mpi/api/function.h"
#include "client/mpi/request/send_buffer.h"

namespace ferry::mpi {
namespace {

// `comm` null: the buffer of the process, of calls that name no communicator.

int Attach(Call& call, Comm* comm, void* buffer, int64_t size) {
  call.NeedRunning();
  return call.Then([&] { return AttachBuffer(comm, buffer, size); });
}

template <typename Size>
int Detach(Call& call, Comm* comm, void* address, Size* size) {
  call.NeedRunning();
  call.NeedPlace(address, "the address for a result is null");
  call.NeedPlace(size, "the address for a result is null");
  void* buffer = nullptr;
  int64_t bytes = 0;
  (void)call.Then([&] { return DetachBuffer(comm, &buffer, &bytes); });
  return call.Then([&] {
    std::memcpy(address, &buffer, sizeof(buffer));
    *size = static_cast<Size>(bytes);
  });
}

int Flush(Call& call, Comm* comm) {
  call.NeedRunning();
  return call.Then([&] { return FlushBuffer(comm); });
}

int Iflush(Call& call, Comm* comm, MPI_Request* request) {
  call.NeedRunning();
  call.NeedPlace(request, "the address for the request is null");
  return call.Then([&] { *request = BeginFlush(comm).Leave()->Publish(); });
}

// use(call, comm, arguments...) for the process' buffer, or for that of a communicator.
template <typename Use, typename... Arguments>
int OfProcess(Call call, Use&& use, Arguments... arguments) {
  return use(call, nullptr, arguments...);
}
template <typename Use, typename... Arguments>
int OfComm(Call call, MPI_Comm handle, Use&& use, Arguments... arguments) {
  Comm* const comm = call.Find(handle);
  return call.ok() ? use(call, comm, arguments...) : call.result();
}

}  // namespace

FERRY_MPI_TWINS(Buffer_attach, (void* buffer, Count size),
                OfProcess(FERRY_MPI_NAME, Attach, buffer, size));
FERRY_MPI_TWINS(Buffer_detach, (void* address, Count* size),
                OfProcess(FERRY_MPI_NAME, Detach<Count>, address, size));
FERRY_MPI_CALL(int, Buffer_flush, (void)) { return OfProcess(FERRY_MPI_NAME, Flush); }
FERRY_MPI_CALL(int, Buffer_iflush, (MPI_Request * request)) {
  return OfProcess(FERRY_MPI_NAME, Iflush, request);
}

FERRY_MPI_TWINS(Comm_attach_buffer, (MPI_Comm comm, void* buffer, Count size),
                OfComm(FERRY_MPI_NAME, comm, Attach, buffer, size));
FERRY_MPI_TWINS(Comm_detach_buffer, (MPI_Comm comm, void* address, Count* size),
                OfComm(FERRY_MPI_NAME, comm, Detach<Count>, address, size));
FERRY_MPI_CALL(int, Comm_flush_buffer, (MPI_Comm comm)) {
  return OfComm(FERRY_MPI_NAME, comm, Flush);
}
FERRY_MPI_CALL(int, Comm_iflush_buffer, (MPI_Comm comm, MPI_Request* request)) {
  return OfComm(FERRY_MPI_NAME, comm, Iflush, request);
}

}  // namespace ferry::mpi
