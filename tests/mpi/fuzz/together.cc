#include "tests/mpi/fuzz/together.h"

#include <mpi.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>

#include "tests/mpi/fuzz/judge.h"
#include "tests/mpi/fuzz/world.h"

namespace ferry::mpi {
namespace {

constexpr int kMaxComplaints = 100;
// Ranks find out mistakes of others only on boards (docs/mpi.md).
constexpr int kCallsBeforeBoards = 4;

constexpr std::array kNames = {"Bcast",    "Gather", "Scatter",   "Allgather",
                               "Alltoall", "Reduce", "Allreduce", "Reduce_scatter_block",
                               "Scan",     "Exscan"};

size_t CommParameter(const CallSignature& signature) {
  const auto found = std::find_if(signature.parameters.begin(), signature.parameters.end(),
                                  [](const Parameter& each) { return each.name == "comm"; });
  return static_cast<size_t>(found - signature.parameters.begin());
}

// Good arguments on all ranks.
Attempt OfAllRanks(const CallSignature& signature, World& world) {
  Attempt attempt = GoodAttempt(signature, world);
  const size_t comm = CommParameter(signature);
  Value all;
  all.text = "MPI_COMM_WORLD";
  all.word = reinterpret_cast<uint64_t>(MPI_COMM_WORLD);
  attempt.choices[comm].values.push_back(all);
  attempt.chosen[comm] = attempt.choices[comm].values.size() - 1;
  return attempt;
}

// Judges the next collective: the ranks must still be in step.
std::string JudgeNext(int size) {
  int one = 1;
  int sum = 0;
  const int code = MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (code == MPI_SUCCESS && sum == size) {
    return "";
  }
  char text[MPI_MAX_ERROR_STRING] = "the sum is wrong";
  int length = 0;
  if (code != MPI_SUCCESS) {
    MPI_Error_string(code, text, &length);
  }
  return std::string("after it, another collective: ") + text;
}

}  // namespace

bool IsFoundOut(const CallSignature& signature) {
  return std::any_of(kNames.begin(), kNames.end(), [&](const char* name) {
    const std::string call = std::string("MPI_") + name;
    return signature.name == call || signature.name == call + "_c";
  });
}

int MakeCallsTogether(unsigned seed, int calls, const std::vector<CallSignature>& signatures) {
  std::mt19937 random(seed);
  int rank = 0;
  int size = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  for (int i = 0; i < kCallsBeforeBoards; ++i) {
    MPI_Barrier(MPI_COMM_WORLD);
  }
  int complaints = 0;
  for (int i = 0; i < calls; ++i) {
    World world;
    const CallSignature& signature = signatures[random() % signatures.size()];
    const int mistaken = static_cast<int>(random() % static_cast<unsigned>(size));
    const size_t parameter = random() % signature.parameters.size();
    const size_t value = random();
    Attempt attempt = OfAllRanks(signature, world);
    if (rank == mistaken && parameter != CommParameter(signature)) {
      attempt.chosen[parameter] = value % attempt.choices[parameter].values.size();
    }
    std::string wrong = JudgeAmongOthers(attempt, world);
    wrong = wrong.empty() ? JudgeNext(size) : wrong;
    if (!wrong.empty()) {
      std::fprintf(stderr, "rank %d, call %d, rank %d being mistaken: %s: %s\n", rank, i, mistaken,
                   TextOf(attempt).c_str(), wrong.c_str());
      if (++complaints == kMaxComplaints) {
        std::exit(1);
      }
    }
  }
  return complaints;
}

}  // namespace ferry::mpi
