// collective_streams ABSENT: any number of ranks with a matched sum on their streams. All enqueue
// two rounds of it, and all but rank ABSENT a third one: ABSENT waits for a message that never
// comes, the others wait for their queues. Prints the class of the resulting error.
#include <mpi.h>
#include <mpix.h>

#include <string>
#include <vector>

#include "ferry/stream.h"
#include "tests/faults/ranks/say.h"

namespace {

void Check(int error, const char* what) {
  if (error != MPI_SUCCESS) {
    std::fprintf(stderr, "rank %d: %s failed with %d\n", ferry_rank(), what, error);
    std::_Exit(1);
  }
}

[[noreturn]] void StopWith(int error) {
  int error_class = MPI_SUCCESS;
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_class(error, &error_class);
  MPI_Error_string(error, text, &length);
  std::printf("rank %d: error %d at %llu: %s\n", ferry_rank(), error_class,
              static_cast<unsigned long long>(ferry::ranks::NowNs()), text);
  std::fflush(stdout);
  std::_Exit(error == MPI_SUCCESS ? 0 : 3);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string absent = argc > 1 ? argv[1] : "0";
  Check(MPI_Init(&argc, &argv), "MPI_Init");
  for (MPI_Comm comm : {MPI_COMM_WORLD, MPI_COMM_SELF}) {  // a queue belongs to no communicator
    Check(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN), "the error handler");
  }
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const bool is_absent = absent == std::to_string(rank);
  std::vector<double> in(20'000, 1.0);
  std::vector<double> out(in.size());
  MPI_Request sum = MPI_REQUEST_NULL;
  Check(MPI_Allreduce_init(in.data(), out.data(), static_cast<int>(in.size()), MPI_DOUBLE, MPI_SUM,
                           MPI_COMM_WORLD, MPI_INFO_NULL, &sum),
        "MPI_Allreduce_init");
  Check(MPIX_Match(&sum), "MPIX_Match");
  ferry_stream stream = nullptr;
  MPIX_Queue queue = MPIX_QUEUE_NULL;
  Check(ferry_stream_create(0, &stream), "ferry_stream_create");
  Check(MPIX_Queue_init(&queue, MPIX_QUEUE_FERRY, &stream), "MPIX_Queue_init");
  for (int round = 0; round < (is_absent ? 2 : 3); ++round) {
    Check(MPIX_Enqueue_start(queue, &sum), "MPIX_Enqueue_start");
    Check(MPIX_Enqueue_wait(queue, &sum), "MPIX_Enqueue_wait");
  }
  if (is_absent) {
    Check(MPIX_Queue_wait(queue), "MPIX_Queue_wait");
    ferry::ranks::Say("under way");
    char byte = 0;
    StopWith(MPI_Recv(&byte, 1, MPI_CHAR, rank, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
  }
  ferry::ranks::Say("under way");
  StopWith(MPIX_Queue_wait(queue));
}
