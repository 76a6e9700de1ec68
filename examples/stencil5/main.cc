// stencil5: DCFA-MPI's five-point stencil, with its 1282 x 1282 points and OpenMP within a rank.
#include <algorithm>
#include <memory>
#include <string>
#include <thread>

#include "examples/common/stencil.h"
#include "examples/stencil5/slab.h"
#include "ferry/ferry.h"

namespace {

// Cores of this node for each of its ranks.
int DefaultThreads(int ranks) {
  int neighbours = 1;  // this rank
  for (int rank = 0; rank < ranks; ++rank) {
    const bool other = rank != ferry_rank();
    neighbours += other && ferry_node_of(rank) == ferry_node_of(ferry_rank()) ? 1 : 0;
  }
  const int cores = static_cast<int>(std::thread::hardware_concurrency());
  return std::max(1, cores / neighbours);
}

}  // namespace

int main(int argc, char** argv) {
  const examples::StencilProgram program = {
      "stencil5",
      "a five-point stencil, divided by rows among the ranks, each with OpenMP threads",
      {1282, 1282, 1},
      2,
      true};
  return examples::StencilMain(
      argc, argv, program,
      [](const examples::StencilArguments& arguments, int ranks, std::string* mistake) {
        const int threads = arguments.threads > 0 ? arguments.threads : DefaultThreads(ranks);
        return stencil5::Plane::Make(arguments, ranks, threads, mistake);
      });
}
