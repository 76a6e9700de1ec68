// Start and end, versions, names, clock (MPI 5.0, chapters 9 and 11, section 20.2).
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <string>

#include "client/include/ferry/ferry.h"
#include "client/mpi/api/function.h"
#include "client/mpi/base/handle_table.h"
#include "client/mpi/channel/table.h"
#include "client/mpi/request/request.h"
#include "client/mpi/request/send_buffer.h"
#include "client/mpi/runtime/fail.h"
#include "client/mpi/runtime/process.h"

namespace ferry::mpi {
namespace {

using Clock = std::chrono::steady_clock;

int Begin(const char* call, int required, int* provided) {
  const Failure failure = Process::Initialize(required, provided, AgreeOnCollectiveTable);
  if (!failure.ok()) {
    return Fail(call, nullptr, failure);
  }
  infos.SetPredefined(MPI_INFO_ENV, MakeEnvironment().Leave());
  MakeCompletedRequest();
  Process::AtFinalize([] {
    FlushAllBuffers();
    AwaitAbandoned();
    DropLeftRequests();
    return Failure();
  });
  // Before anything else ends (MPI 5.0, section 11.2.4).
  Process::AtFinalize([] { return Process::self().attributes().DeleteAll(MPI_COMM_SELF); });
  return MPI_SUCCESS;
}

int CheckResult(const char* call, const void* result) {
  return result != nullptr ? MPI_SUCCESS
                           : Fail(call, nullptr, MPI_ERR_ARG, "the address for the result is null");
}

// Copies a text and its length without the final zero to where the caller has room for `room`.
void PutText(const std::string& text, char* to, size_t room, int* length) {
  const size_t size = std::min(text.size(), room - 1);
  std::memcpy(to, text.data(), size);
  to[size] = '\0';
  *length = static_cast<int>(size);
}

}  // namespace
}  // namespace ferry::mpi

using namespace ferry::mpi;  // NOLINT: the functions below are of no namespace

// ---- Start and end ------------------------------------------------------------------------------

FERRY_MPI_CALL(int, Init, (int*, char***)) { return Begin("MPI_Init", MPI_THREAD_SINGLE, nullptr); }

FERRY_MPI_CALL(int, Init_thread, (int*, char***, int required, int* provided)) {
  return Begin("MPI_Init_thread", required, provided);
}

FERRY_MPI_CALL(int, Finalize, (void)) {
  if (const int error = CheckRunning("MPI_Finalize"); error != MPI_SUCCESS) {
    return error;
  }
  const Failure failure = Process::Finalize();
  return failure.ok() ? MPI_SUCCESS : Fail("MPI_Finalize", nullptr, failure);
}

FERRY_MPI_CALL(int, Initialized, (int* flag)) {
  if (const int error = CheckResult("MPI_Initialized", flag); error != MPI_SUCCESS) {
    return error;
  }
  *flag = Process::phase() == Phase::kBefore ? 0 : 1;
  return MPI_SUCCESS;
}

FERRY_MPI_CALL(int, Finalized, (int* flag)) {
  if (const int error = CheckResult("MPI_Finalized", flag); error != MPI_SUCCESS) {
    return error;
  }
  *flag = Process::phase() == Phase::kAfter ? 1 : 0;
  return MPI_SUCCESS;
}

FERRY_MPI_CALL(int, Query_thread, (int* provided)) {
  if (const int error = CheckRunning("MPI_Query_thread"); error != MPI_SUCCESS) {
    return error;
  }
  if (const int error = CheckResult("MPI_Query_thread", provided); error != MPI_SUCCESS) {
    return error;
  }
  *provided = Threads::level();
  return MPI_SUCCESS;
}

FERRY_MPI_CALL(int, Is_thread_main, (int* flag)) {
  if (const int error = CheckRunning("MPI_Is_thread_main"); error != MPI_SUCCESS) {
    return error;
  }
  if (const int error = CheckResult("MPI_Is_thread_main", flag); error != MPI_SUCCESS) {
    return error;
  }
  *flag = Process::IsMainThread() ? 1 : 0;
  return MPI_SUCCESS;
}

// The whole job ends, whatever the communicator.
FERRY_MPI_CALL(int, Abort, (MPI_Comm comm, int errorcode)) {
  if (comms.Find(comm) == nullptr) {
    return FailComm("MPI_Abort", comm);
  }
  Process::Abort(errorcode, "MPI_Abort was called with error code " + std::to_string(errorcode));
}

// For tools that replace it: the library itself has no levels of profiling.
FERRY_MPI_CALL(int, Pcontrol, (const int, ...)) { return MPI_SUCCESS; }

// ---- Versions, place and clock ------------------------------------------------------------------

FERRY_MPI_CALL(int, Get_version, (int* version, int* subversion)) {
  if (version == nullptr || subversion == nullptr) {
    return CheckResult("MPI_Get_version", nullptr);
  }
  *version = MPI_VERSION;
  *subversion = MPI_SUBVERSION;
  return MPI_SUCCESS;
}

FERRY_MPI_CALL(int, Get_library_version, (char* version, int* length)) {
  if (version == nullptr || length == nullptr) {
    return CheckResult("MPI_Get_library_version", nullptr);
  }
  PutText(std::string("Ferry ") + ferry_version(), version, MPI_MAX_LIBRARY_VERSION_STRING, length);
  return MPI_SUCCESS;
}

FERRY_MPI_CALL(int, Abi_get_version, (int* major, int* minor)) {
  if (major == nullptr || minor == nullptr) {
    return CheckResult("MPI_Abi_get_version", nullptr);
  }
  *major = MPI_ABI_VERSION;
  *minor = MPI_ABI_SUBVERSION;
  return MPI_SUCCESS;
}

FERRY_MPI_CALL(int, Get_processor_name, (char* name, int* length)) {
  if (const int error = CheckRunning("MPI_Get_processor_name"); error != MPI_SUCCESS) {
    return error;
  }
  if (name == nullptr || length == nullptr) {
    return CheckResult("MPI_Get_processor_name", nullptr);
  }
  char host[MPI_MAX_PROCESSOR_NAME] = "";
  if (gethostname(host, sizeof(host) - 1) != 0) {
    std::strcpy(host, "localhost");
  }
  PutText(host, name, MPI_MAX_PROCESSOR_NAME, length);
  return MPI_SUCCESS;
}

FERRY_MPI_CALL(double, Wtime, (void)) {
  return std::chrono::duration<double>(Clock::now().time_since_epoch()).count();
}

FERRY_MPI_CALL(double, Wtick, (void)) {
  return static_cast<double>(Clock::period::num) / static_cast<double>(Clock::period::den);
}
