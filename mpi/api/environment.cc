// Start and end, versions, names, clock (MPI 5.0, chapters 9 and 11, section 20.2).
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <string>

#include "include/ferry/ferry.h"
#include "mpi/api/call.h"
#include "mpi/api/function.h"
#include "mpi/coll/helper.h"
#include "mpi/coll/table.h"
#include "mpi/init/process.h"
#include "mpi/p2p/request.h"
#include "mpi/p2p/send_buffer.h"
#include "mpi/partitioned/orphans.h"

namespace ferry::mpi {
namespace {

using Clock = std::chrono::steady_clock;

// Once in a process.
void PrepareProcess() {
  infos.SetPredefined(MPI_INFO_ENV, MakeEnvironment().Leave());
  MakeCompletedRequest();
  Process::AtLeave([] {
    FlushAllBuffers();
    AwaitAbandoned();
    DropLeftRequests();
    DropOrphans();
    return Failure();
  });
  StopHelperAtLeave();
}

int Begin(Call call, int required, int* provided) {
  call.Refuse(Process::Initialize(required, provided, HowToJoin()));
  return call.Then([] {
    Process::AtFinalize([] {
      FlushAllBuffers();
      return Failure();
    });
    // Before anything else ends (MPI 5.0, section 11.2.4).
    Process::AtFinalize([] { return Process::self().attributes().DeleteAll(MPI_COMM_SELF); });
  });
}

constexpr char kNoResult[] = "the address for the result is null";

// Copies a text and its length without the final zero to where the caller has room for `room`.
void PutText(const std::string& text, char* to, size_t room, int* length) {
  const size_t size = std::min(text.size(), room - 1);
  std::memcpy(to, text.data(), size);
  to[size] = '\0';
  *length = static_cast<int>(size);
}

}  // namespace

const Process::Joining& HowToJoin() {
  static constexpr Process::Joining joining = {AgreeOnCollectiveTable, PrepareProcess};
  return joining;
}

// ---- Start and end ------------------------------------------------------------------------------

FERRY_MPI_CALL(int, MPI_Init, (int*, char***)) {
  return Begin(FERRY_MPI_NAME, MPI_THREAD_SINGLE, nullptr);
}

FERRY_MPI_CALL(int, MPI_Init_thread, (int*, char***, int required, int* provided)) {
  return Begin(FERRY_MPI_NAME, required, provided);
}

FERRY_MPI_CALL(int, MPI_Finalize, (void)) {
  Call call(FERRY_MPI_NAME);
  call.NeedWorld();
  return call.Then(Process::Finalize);
}

FERRY_MPI_CALL(int, MPI_Initialized, (int* flag)) {
  Call call(FERRY_MPI_NAME);
  call.NeedPlace(flag, kNoResult);
  return call.Then([&] { *flag = Process::phase() == Phase::kBefore ? 0 : 1; });
}

FERRY_MPI_CALL(int, MPI_Finalized, (int* flag)) {
  Call call(FERRY_MPI_NAME);
  call.NeedPlace(flag, kNoResult);
  return call.Then([&] { *flag = Process::phase() == Phase::kAfter ? 1 : 0; });
}

FERRY_MPI_CALL(int, MPI_Query_thread, (int* provided)) {
  Call call(FERRY_MPI_NAME);
  call.NeedWorld();
  call.NeedPlace(provided, kNoResult);
  return call.Then([&] { *provided = Process::thread_level(); });
}

FERRY_MPI_CALL(int, MPI_Is_thread_main, (int* flag)) {
  Call call(FERRY_MPI_NAME);
  call.NeedWorld();
  call.NeedPlace(flag, kNoResult);
  return call.Then([&] { *flag = Process::IsMainThread() ? 1 : 0; });
}

// The whole job ends, whatever the communicator.
FERRY_MPI_CALL(int, MPI_Abort, (MPI_Comm comm, int errorcode)) {
  Call call(FERRY_MPI_NAME);
  (void)call.Find(comm);
  return call.Then([&] {
    Process::Abort(errorcode, "MPI_Abort was called with error code " + std::to_string(errorcode));
  });
}

// For tools that replace it: the library itself has no levels of profiling.
FERRY_MPI_CALL(int, MPI_Pcontrol, (const int, ...)) { return MPI_SUCCESS; }

// ---- Versions, place and clock ------------------------------------------------------------------

FERRY_MPI_CALL(int, MPI_Get_version, (int* version, int* subversion)) {
  Call call(FERRY_MPI_NAME);
  call.NeedPlace(version, kNoResult);
  call.NeedPlace(subversion, kNoResult);
  return call.Then([&] {
    *version = MPI_VERSION;
    *subversion = MPI_SUBVERSION;
  });
}

FERRY_MPI_CALL(int, MPI_Get_library_version, (char* version, int* length)) {
  Call call(FERRY_MPI_NAME);
  call.NeedPlace(version, kNoResult);
  call.NeedPlace(length, kNoResult);
  return call.Then([&] {
    PutText(std::string("Ferry ") + ferry_version(), version, MPI_MAX_LIBRARY_VERSION_STRING,
            length);
  });
}

FERRY_MPI_CALL(int, MPI_Abi_get_version, (int* major, int* minor)) {
  Call call(FERRY_MPI_NAME);
  call.NeedPlace(major, kNoResult);
  call.NeedPlace(minor, kNoResult);
  return call.Then([&] {
    *major = MPI_ABI_VERSION;
    *minor = MPI_ABI_SUBVERSION;
  });
}

FERRY_MPI_CALL(int, MPI_Get_processor_name, (char* name, int* length)) {
  Call call(FERRY_MPI_NAME);
  call.NeedRunning();
  call.NeedPlace(name, kNoResult);
  call.NeedPlace(length, kNoResult);
  return call.Then([&] {
    char host[MPI_MAX_PROCESSOR_NAME] = "";
    if (gethostname(host, sizeof(host) - 1) != 0) {
      std::strcpy(host, "localhost");
    }
    PutText(host, name, MPI_MAX_PROCESSOR_NAME, length);
  });
}

FERRY_MPI_CALL(double, MPI_Wtime, (void)) {
  return std::chrono::duration<double>(Clock::now().time_since_epoch()).count();
}

FERRY_MPI_CALL(double, MPI_Wtick, (void)) {
  return static_cast<double>(Clock::period::num) / static_cast<double>(Clock::period::den);
}

}  // namespace ferry::mpi
