// Nonblocking collectives start a thread of Ferry's, and thus need locked instructions. When that
// thread is at rest, messages cost what they did before. Run by two ranks or more, with the thread
// level "single", "serialized" or "multiple".
#include <sched.h>

#include <chrono>
#include <vector>

#include "client/api/front_end.h"
#include "tests/mpi/ranks/check.h"
#include "tests/support/patience.h"

namespace {

constexpr int kRounds = 20;
constexpr int kValues = 50'000;  // too many for one message
using ferry::tests::kPatience;

bool AreThreadsAllowed() {
  return ferry_front_end(ferry::client::kFrontEndVersion)->AreThreadsAllowed();
}

// All ranks start the reduction, one of them late, so that the others need the helper meanwhile.
void Reduce(int round, std::vector<int>* sum) {
  std::vector<int> mine(kValues);
  for (int i = 0; i < kValues; ++i) {
    mine[i] = rank + i + round;
  }
  MPI_Request request;
  int token = 0;
  const int late = round % size;
  if (rank == late) {
    for (int peer = 0; peer < size; ++peer) {
      if (peer != late) {
        OK(MPI_Recv(&token, 1, MPI_INT, peer, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
      }
    }
  }
  OK(MPI_Iallreduce(mine.data(), sum->data(), kValues, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request));
  if (rank != late) {
    CHECK(AreThreadsAllowed());
    OK(MPI_Send(&token, 1, MPI_INT, late, 1, MPI_COMM_WORLD));
  }
  OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
  for (int i = 0; i < kValues; ++i) {
    CHECK((*sum)[i] == size * (size - 1) / 2 + size * (i + round));
  }
}

// Messages go round until the helper is at rest; then they cost what they did before.
void ExpectRest(bool expected) {
  const auto end = std::chrono::steady_clock::now() + kPatience;
  int is_over = 0;
  while (!is_over) {
    int sent = rank;
    int received = -1;
    MPI_Request requests[2];
    OK(MPI_Irecv(&received, 1, MPI_INT, before, 2, MPI_COMM_WORLD, &requests[0]));
    OK(MPI_Isend(&sent, 1, MPI_INT, next, 2, MPI_COMM_WORLD, &requests[1]));
    OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
    CHECK(received == before);
    const int is_mine_over = AreThreadsAllowed() != expected ? 1 : 0;
    OK(MPI_Allreduce(&is_mine_over, &is_over, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD));
    CHECK(std::chrono::steady_clock::now() < end);
    sched_yield();
  }
}

}  // namespace

int main(int argc, char** argv) {
  const int level = level_of(argc, argv);
  begin_with_threads(&argc, &argv, level);
  const bool rests = level < MPI_THREAD_MULTIPLE;
  CHECK(AreThreadsAllowed() == !rests);
  std::vector<int> sum(kValues);
  for (int round = 0; round < kRounds; ++round) {
    Reduce(round, &sum);
    if (round % 2 == 0) {
      ExpectRest(rests);
    }
  }
  return end_well("the helper rested");
}
