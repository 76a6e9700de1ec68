// Ranks that wait, each in a way of its own, for what never comes: rank R as the argument R + 1
// says. One that gets an error prints it with its class, or the code of ferry.h, and ends with
// status 3.
//
//   away      calls nothing any more
//   recv      MPI_Recv               test     MPI_Test, again and again
//   barrier   MPI_Barrier            fence    MPI_Win_fence
//   receive   ferry_recv             poll     ferry_test, again and again
//   finalize  MPI_Finalize (rank 1)
// "absent" of rank 0: it does not call MPI_Init, in which the others wait.
#include <mpi.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "config/environment.h"
#include "tests/faults/ranks/say.h"

namespace {

using ferry::ranks::NowNs;
using ferry::ranks::Say;
using ferry::ranks::StopOnError;

void StopOnMpiError(int error) {
  if (error == MPI_SUCCESS) {
    return;
  }
  int error_class = MPI_SUCCESS;
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_class(error, &error_class);
  MPI_Error_string(error, text, &length);
  std::printf("rank %d: error %d at %llu: %s\n", ferry_rank(), error_class,
              static_cast<unsigned long long>(NowNs()), text);
  std::fflush(stdout);
  std::_Exit(3);
}

[[noreturn]] void StayAway() {
  while (true) {
    pause();
  }
}

void TestForEver() {
  int done = 0;
  int message = 0;
  MPI_Request request = MPI_REQUEST_NULL;
  StopOnMpiError(MPI_Irecv(&message, 1, MPI_INT, 0, 7, MPI_COMM_WORLD, &request));
  while (done == 0) {
    StopOnMpiError(MPI_Test(&request, &done, MPI_STATUS_IGNORE));
  }
}

void PollForEver() {
  int done = 0;
  int message = 0;
  ferry_request request;
  StopOnError(ferry_irecv(&message, sizeof(message), 0, 7, &request));
  while (done == 0) {
    StopOnError(ferry_test(&request, &done, nullptr));
  }
}

void Wait(const std::string& how, MPI_Win window) {
  int message = 0;
  if (how == "recv") {
    StopOnMpiError(MPI_Recv(&message, 1, MPI_INT, 0, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
  } else if (how == "test") {
    TestForEver();
  } else if (how == "barrier") {
    StopOnMpiError(MPI_Barrier(MPI_COMM_WORLD));
  } else if (how == "fence") {
    StopOnMpiError(MPI_Win_fence(0, window));
  } else if (how == "receive") {
    StopOnError(ferry_recv(&message, sizeof(message), 0, 7, nullptr));
  } else if (how == "poll") {
    PollForEver();
  } else if (how == "finalize") {
    char text[MPI_MAX_ERROR_STRING] = "well";
    int length = 0;
    if (const int error = MPI_Finalize(); error != MPI_SUCCESS) {
      MPI_Error_string(error, text, &length);
    }
    std::printf("rank 1: ends: %s\n", text);
    std::fflush(stdout);
    std::_Exit(3);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const auto number =
      ferry::config::FindVariable(ferry::config::ProcessEnvironment(), "FERRY_RANK");
  const int rank = number.has_value() ? std::atoi(std::string(*number).c_str()) : 0;
  const std::string how = rank + 1 < argc ? argv[rank + 1] : "away";
  if (how == "absent") {
    StayAway();
  }
  MPI_Init(&argc, &argv);
  for (MPI_Comm comm : {MPI_COMM_WORLD, MPI_COMM_SELF}) {
    StopOnMpiError(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN));
  }
  MPI_Win window = MPI_WIN_NULL;
  if (how != "finalize" && std::string(argv[1]) != "finalize") {
    int* memory = nullptr;
    StopOnMpiError(MPI_Win_allocate(sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD,
                                    static_cast<void*>(&memory), &window));
    StopOnMpiError(MPI_Win_set_errhandler(window, MPI_ERRORS_RETURN));
    StopOnMpiError(MPI_Win_fence(0, window));
  }
  Say("under way");
  if (how == "away") {
    StayAway();
  }
  Wait(how, window);
  std::printf("rank %d: nothing was wrong\n", rank);
  return 0;
}
