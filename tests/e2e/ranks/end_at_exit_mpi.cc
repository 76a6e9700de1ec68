// Calls MPI_Finalize, or MPI_Session_finalize, while the process ends
// (tests/e2e/ranks/end_at_exit.h), after all that starts threads of Ferry's or keeps objects:
// nonblocking collectives, windows, threads of the program's.
#include <mpi.h>

#include <thread>
#include <vector>

#include "tests/e2e/ranks/end_at_exit.h"
#include "tests/mpi/ranks/check.h"

namespace {

MPI_Session session = MPI_SESSION_NULL;
MPI_Win window = MPI_WIN_NULL;
MPI_Comm comm = MPI_COMM_NULL;

// The last error of this thread is remembered in a long sentence.
void Fail() {
  expect_error(MPI_Send(nullptr, 1, MPI_INT, size_of(comm) + 5, 0, comm), MPI_ERR_RANK,
               "the destination");
}

void UseCollectives() {
  for (int i = 0; i < 10; ++i) {  // on boards, too
    int sum = 0;
    const int one = 1;
    MPI_Request requests[2];
    OK(MPI_Iallreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm, &requests[0]));
    OK(MPI_Ibarrier(comm, &requests[1]));
    OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
    CHECK(sum == size_of(comm));
    OK(MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_INT, MPI_SUM, comm));
    CHECK(sum == size_of(comm) * size_of(comm));
  }
}

void UseWindow() {
  const int own = rank_in(comm);
  OK(MPI_Win_fence(0, window));
  OK(MPI_Put(&own, 1, MPI_INT, (own + 1) % size_of(comm), 0, 1, MPI_INT, window));
  OK(MPI_Win_fence(0, window));
}

void UseThreads() {
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([i] {
      int got = -1;
      OK(MPI_Sendrecv(&i, 1, MPI_INT, rank_in(comm), i, &got, 1, MPI_INT, rank_in(comm), i, comm,
                      MPI_STATUS_IGNORE));
      CHECK(got == i);
      Fail();
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
}

void Use() {
  UseCollectives();
  UseWindow();
  UseThreads();
  Fail();
}

void End() {
  Use();
  OK(MPI_Win_free(&window));
  if (session == MPI_SESSION_NULL) {
    OK(MPI_Finalize());
  } else {
    OK(MPI_Comm_free(&comm));
    OK(MPI_Session_finalize(&session));
  }
  puts("left at exit");
}

void BeginSession() {
  const MPI_Info level = info_with("thread_level", "MPI_THREAD_MULTIPLE");
  MPI_Group group = MPI_GROUP_NULL;
  OK(MPI_Session_init(level, MPI_ERRORS_RETURN, &session));
  OK(MPI_Group_from_session_pset(session, "mpi://WORLD", &group));
  OK(MPI_Comm_create_from_group(group, "end", MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm));
  OK(MPI_Group_free(const_cast<MPI_Group*>(&group)));
  OK(MPI_Info_free(const_cast<MPI_Info*>(&level)));
}

}  // namespace

int main(int argc, char** argv) {
  static int memory[16];
  if (argc != 3 || !EndAtExit(argv[1], End)) {
    fprintf(stderr, "usage: end_at_exit handler|object|library world|session\n");
    return 2;
  }
  if (strcmp(argv[2], "session") == 0) {
    BeginSession();
  } else {
    begin_with_threads(&argc, &argv, MPI_THREAD_MULTIPLE);
    comm = MPI_COMM_WORLD;
  }
  OK(MPI_Win_create(memory, sizeof(memory), sizeof(int), MPI_INFO_NULL, comm, &window));
  Use();
  return 0;
}
