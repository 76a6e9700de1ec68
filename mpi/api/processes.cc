// Spawning and connecting processes (MPI 5.0, sections 11.8 to 11.11). The ranks of a job are known
// when it starts, so these calls are refused, with what to do instead. The arguments that a call
// needs to have an error handler are checked first, and others are not looked at.
#include "mpi/api/call.h"
#include "mpi/api/function.h"

namespace ferry::mpi {
namespace {

constexpr char kStartTogether[] =
    "Ferry starts no processes while a job runs: have ferryrun start them all, several programs "
    "with colons between them (ferryrun -n 1 ./manager : -n 8 ./worker); they share "
    "MPI_COMM_WORLD, and its attribute MPI_APPNUM says which program a process runs";
constexpr char kOneJob[] =
    "Ferry does not connect jobs with each other: start both programs as one job (ferryrun -n 4 "
    "./server : -n 2 ./client); they share MPI_COMM_WORLD, and MPI_Intercomm_create makes an "
    "intercommunicator of them";

int Refuse(Call call, const char* text) {
  call.NeedRunning();
  call.Refuse(MPI_ERR_UNSUPPORTED_OPERATION, text);
  return call.result();
}

// Failures go to the communicator's error handler.
int RefuseOn(Call call, MPI_Comm comm, const char* text) {
  (void)call.FindIntra(comm);
  call.Refuse(MPI_ERR_UNSUPPORTED_OPERATION, text);
  return call.result();
}

}  // namespace

// ---- Spawning -----------------------------------------------------------------------------------

FERRY_MPI_CALL(int, MPI_Comm_spawn,
               (const char*, char*[], int, MPI_Info, int, MPI_Comm comm, MPI_Comm*, int[])) {
  return RefuseOn(FERRY_MPI_NAME, comm, kStartTogether);
}

FERRY_MPI_CALL(int, MPI_Comm_spawn_multiple,
               (int, char*[], char**[], const int[], const MPI_Info[], int, MPI_Comm comm,
                MPI_Comm*, int[])) {
  return RefuseOn(FERRY_MPI_NAME, comm, kStartTogether);
}

// ---- Connecting ---------------------------------------------------------------------------------

FERRY_MPI_CALL(int, MPI_Open_port, (MPI_Info, char*)) { return Refuse(FERRY_MPI_NAME, kOneJob); }

FERRY_MPI_CALL(int, MPI_Close_port, (const char*)) { return Refuse(FERRY_MPI_NAME, kOneJob); }

FERRY_MPI_CALL(int, MPI_Comm_accept, (const char*, MPI_Info, int, MPI_Comm comm, MPI_Comm*)) {
  return RefuseOn(FERRY_MPI_NAME, comm, kOneJob);
}

FERRY_MPI_CALL(int, MPI_Comm_connect, (const char*, MPI_Info, int, MPI_Comm comm, MPI_Comm*)) {
  return RefuseOn(FERRY_MPI_NAME, comm, kOneJob);
}

FERRY_MPI_CALL(int, MPI_Comm_join, (int, MPI_Comm*)) { return Refuse(FERRY_MPI_NAME, kOneJob); }

// ---- Names --------------------------------------------------------------------------------------

FERRY_MPI_CALL(int, MPI_Publish_name, (const char*, MPI_Info, const char*)) {
  return Refuse(FERRY_MPI_NAME, kOneJob);
}

FERRY_MPI_CALL(int, MPI_Unpublish_name, (const char*, MPI_Info, const char*)) {
  return Refuse(FERRY_MPI_NAME, kOneJob);
}

FERRY_MPI_CALL(int, MPI_Lookup_name, (const char*, MPI_Info, char*)) {
  return Refuse(FERRY_MPI_NAME, kOneJob);
}

}  // namespace ferry::mpi
