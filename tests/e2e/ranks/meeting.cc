// Ranks that meet at the start of a job and at its end, by the calls of one of three front ends
// (see BUILD). One of them is late, or ends without the last meeting.
//
//   meeting start RANK FIFO   that rank starts once FIFO can be read
//   meeting end RANK FIFO     it ends, likewise
//   meeting exit RANK CODE    it exits with CODE, when all have started; the others are in a
//                             barrier
//   meeting after RANK CODE   it exits with CODE after the end
//
// Each prints "rank R: pid P" first and, where all go well, "rank R: met" at last.
#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "config/environment.h"

#if defined(FERRY_TEST_MPI)
#include <mpi.h>
#elif defined(FERRY_TEST_SHMEM)
#include <shmem.h>
#else
#include "ferry/ferry.h"
#endif

namespace {

#if defined(FERRY_TEST_MPI)
void Start() { MPI_Init(nullptr, nullptr); }
void Meet() { MPI_Barrier(MPI_COMM_WORLD); }
void End() { MPI_Finalize(); }
#elif defined(FERRY_TEST_SHMEM)
void Start() { shmem_init(); }
void Meet() { shmem_barrier_all(); }
void End() { shmem_finalize(); }
#else
void Require(int error) {
  if (error != FERRY_SUCCESS) {
    std::fprintf(stderr, "%s\n", ferry_last_error());
    std::exit(9);
  }
}
void Start() { Require(ferry_init(FERRY_THREAD_SINGLE, nullptr)); }
void Meet() { Require(ferry_barrier()); }
void End() { Require(ferry_finalize()); }
#endif

void AwaitTest(const char* fifo) {
  const int fd = open(fifo, O_RDONLY | O_CLOEXEC);  // blocks until the test opens the other end
  if (fd < 0) {
    std::perror(fifo);
    std::exit(9);
  }
  close(fd);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string own(
      ferry::config::FindVariable(ferry::config::ProcessEnvironment(), "FERRY_RANK").value_or(""));
  if (argc != 4 || own.empty()) {
    std::fprintf(stderr,
                 "usage: ferryrun ... meeting start|end RANK FIFO | exit|after RANK CODE\n");
    return 9;
  }
  std::printf("rank %s: pid %d\n", own.c_str(), static_cast<int>(getpid()));
  std::fflush(stdout);
  const std::string how = argv[1];
  const bool is_named = own == argv[2];
  if (is_named && how == "start") {
    AwaitTest(argv[3]);
  }
  Start();
  Meet();
  if (is_named && how == "end") {
    AwaitTest(argv[3]);
  }
  if (is_named && how == "exit") {
    std::_Exit(std::atoi(argv[3]));  // no exit: that of OpenSHMEM would be an end in good order
  }
  if (how == "exit") {
    Meet();
  }
  End();
  if (is_named && how == "after") {
    return std::atoi(argv[3]);
  }
  std::printf("rank %s: met\n", own.c_str());
  return 0;
}
