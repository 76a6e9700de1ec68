#include "coll/algorithms/algorithm.h"

namespace ferry::collective {
namespace {

// Messages between two ranks that are neighbours more than once pair up in the order in which the
// sender has them. In a Cartesian topology a block sent to the neighbour before arrives from the
// neighbour behind: a receiver's blocks are filled in the order of the sender's directions.
size_t SourceIndex(const Problem& problem, size_t i) { return problem.is_cartesian ? i ^ 1 : i; }

// `send_block(i)`: what goes to the i-th destination.
template <typename SendBlock>
void AddLinear(const Problem& problem, ScheduleBuilder* builder, SendBlock&& send_block) {
  // A rank may be its own neighbour, even several times: it sends no messages then, but keeps the
  // same order.
  std::vector<Range> to_self;
  for (size_t i = 0; i < problem.destinations.size(); ++i) {
    const int to = problem.destinations[i];
    if (to == problem.rank) {
      to_self.push_back(send_block(static_cast<int>(i)));
    } else if (to >= 0) {
      builder->Send(to, send_block(static_cast<int>(i)));
    }
  }
  size_t from_self = 0;
  for (size_t i = 0; i < problem.sources.size(); ++i) {
    const size_t index = SourceIndex(problem, i);
    const int from = problem.sources[index];
    const Range block = problem.ReceiveBlock(static_cast<int>(index));
    if (from == problem.rank && from_self < to_self.size()) {
      builder->Copy(to_self[from_self++], block);
    } else if (from >= 0 && from != problem.rank) {
      builder->Receive(from, block);
    }
  }
}

void Allgather(const Problem& problem, ScheduleBuilder* builder) {
  AddLinear(problem, builder, [&](int) { return Range{Place::kInput, 0, problem.block_bytes}; });
}

void Alltoall(const Problem& problem, ScheduleBuilder* builder) {
  AddLinear(problem, builder, [&](int i) { return problem.SendBlock(i); });
}

constexpr Algorithm kAllgather[] = {
    {Collective::kNeighbourAllgather, "linear", nullptr, Allgather},
};
constexpr Algorithm kAlltoall[] = {
    {Collective::kNeighbourAlltoall, "linear", nullptr, Alltoall},
};

}  // namespace

std::span<const Algorithm> NeighbourAllgatherAlgorithms() { return kAllgather; }
std::span<const Algorithm> NeighbourAlltoallAlgorithms() { return kAlltoall; }

}  // namespace ferry::collective
