// Where ranks have direct links, a thread of Ferry's looks after these while they compute. Boards
// and buffers that only ranks of the node reach are none of its business: after collectives inside
// the node it rests while its rank polls. Run by two ranks on each of two nodes, with direct links.
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "tests/mpi/ranks/check.h"
#include "tests/support/patience.h"

namespace {

constexpr int kValues = 4096;
constexpr int kFewRounds = 10;
using ferry::tests::kPatience;
constexpr auto kWhile = std::chrono::milliseconds(100);
constexpr long kFewWakes = 1;  // in that time; the thread looks every half millisecond otherwise

std::string WordsOf(const std::filesystem::path& file) {
  std::ifstream words(file);
  return {std::istreambuf_iterator<char>(words), {}};
}

// How often the thread has gone to sleep; -1: there is none.
long Sleeps() {
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    if (WordsOf(task.path() / "comm") == "ferry-link\n") {
      const std::string status = WordsOf(task.path() / "status");
      const std::string name = "\nvoluntary_ctxt_switches:";
      return std::atol(status.c_str() + status.find(name) + name.size());
    }
  }
  return -1;
}

void Poll() {
  int is_there = 0;
  OK(MPI_Iprobe(MPI_ANY_SOURCE, 7, MPI_COMM_WORLD, &is_there, MPI_STATUS_IGNORE));
  CHECK(!is_there);
}

}  // namespace

int main(int argc, char** argv) {
  begin_with_threads(&argc, &argv, MPI_THREAD_SINGLE);
  CHECK(size == 4);
  const auto end = std::chrono::steady_clock::now() + kPatience;
  const int partner = (rank + 2) % 4;  // on the other node
  for (int rounds = 0, last = 0; !last; ++rounds) {
    int sent = rounds;
    int received = -1;
    OK(MPI_Sendrecv(&sent, 1, MPI_INT, partner, 1, &received, 1, MPI_INT, partner, 1,
                    MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    CHECK(received == rounds);
    const int has_thread = Sleeps() >= 0 ? 1 : 0;
    OK(MPI_Allreduce(&has_thread, &last, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD));
    CHECK(std::chrono::steady_clock::now() < end);
  }

  MPI_Comm node;
  OK(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node));
  int* values = nullptr;
  OK(MPI_Alloc_mem(2 * kValues * sizeof(int), MPI_INFO_NULL, &values));
  for (int i = 0; i < kValues; ++i) {
    values[i] = i;
  }
  for (int round = 0; round < kFewRounds; ++round) {
    OK(MPI_Allreduce(values, values + kValues, kValues, MPI_INT, MPI_SUM, node));
    CHECK(values[kValues + 5] == 10);
  }

  long wakes = kFewWakes + 1;
  while (wakes > kFewWakes) {
    const long before_that = Sleeps();
    for (const auto until = std::chrono::steady_clock::now() + kWhile;
         std::chrono::steady_clock::now() < until;) {
      Poll();
    }
    wakes = Sleeps() - before_that;
    CHECK(std::chrono::steady_clock::now() < end);
  }
  OK(MPI_Barrier(MPI_COMM_WORLD));
  OK(MPI_Free_mem(values));
  OK(MPI_Comm_free(&node));
  return end_well("the link thread rested");
}
