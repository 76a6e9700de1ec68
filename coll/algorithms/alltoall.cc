#include "coll/algorithms/algorithm.h"
#include "coll/algorithms/party.h"

namespace ferry::collective {
namespace {

// The blocks that this rank sends to each. In place, the output is copied away first, for it is
// overwritten.
std::vector<Range> AddOutgoing(const Problem& problem, ScheduleBuilder* builder) {
  std::vector<Range> outgoing;
  for (int i = 0; i < problem.size; ++i) {
    if (!problem.in_place) {
      outgoing.push_back(problem.SendBlock(i));
    } else if (i == problem.rank) {
      outgoing.push_back(problem.ReceiveBlock(i));
    } else {
      const Range block = problem.ReceiveBlock(i);
      outgoing.push_back(builder->Scratch(block.size_bytes));
      builder->Copy(block, outgoing.back());
    }
  }
  return outgoing;
}

void AddExchange(const Problem& problem, const std::vector<Range>& outgoing, int to, int from,
                 ScheduleBuilder* builder) {
  builder->Send(to, outgoing[static_cast<size_t>(to)]);
  builder->Receive(from, problem.ReceiveBlock(from));
}

void AddOwn(const Problem& problem, const std::vector<Range>& outgoing, ScheduleBuilder* builder) {
  builder->Copy(outgoing[static_cast<size_t>(problem.rank)], problem.ReceiveBlock(problem.rank));
}

// Exchanges with all ranks at once.
void Linear(const Problem& problem, ScheduleBuilder* builder) {
  const std::vector<Range> outgoing = AddOutgoing(problem, builder);
  const int n = problem.size;
  for (int i = 1; i < n; ++i) {
    AddExchange(problem, outgoing, (problem.rank + i) % n, (problem.rank - i + n) % n, builder);
  }
  AddOwn(problem, outgoing, builder);
}

// One exchange after the other: each rank is read by one other at a time.
void Pairwise(const Problem& problem, ScheduleBuilder* builder) {
  const std::vector<Range> outgoing = AddOutgoing(problem, builder);
  const int n = problem.size;
  for (int i = 1; i < n; ++i) {
    const bool in_pairs = IsPowerOfTwo(n);
    AddExchange(problem, outgoing, in_pairs ? problem.rank ^ i : (problem.rank + i) % n,
                in_pairs ? problem.rank ^ i : (problem.rank - i + n) % n, builder);
    builder->Fence();
  }
  AddOwn(problem, outgoing, builder);
}

// log2(n) rounds. The block for the i-th rank from this one on travels the powers of two that make
// up i, packed with those that travel the same way.
void Bruck(const Problem& problem, ScheduleBuilder* builder) {
  const int n = problem.size;
  const size_t bytes = problem.block_bytes;
  const Range all = builder->Scratch(bytes * static_cast<size_t>(n));
  const auto block = [&](int i) { return all.Part(static_cast<size_t>(i) * bytes, bytes); };
  for (int i = 0; i < n; ++i) {
    const int to = (problem.rank + i) % n;
    builder->Copy(problem.in_place ? problem.ReceiveBlock(to) : problem.SendBlock(to), block(i));
  }
  for (int distance = 1; distance < n; distance *= 2) {
    std::vector<int> travellers;
    for (int i = distance; i < n; ++i) {
      if ((i & distance) != 0) {
        travellers.push_back(i);
      }
    }
    const Range out = builder->Scratch(bytes * travellers.size());
    const Range in = builder->Scratch(bytes * travellers.size());
    for (size_t i = 0; i < travellers.size(); ++i) {
      builder->Copy(block(travellers[i]), out.Part(i * bytes, bytes));
    }
    builder->Send((problem.rank + distance) % n, out);
    builder->Receive((problem.rank - distance + n) % n, in);
    for (size_t i = 0; i < travellers.size(); ++i) {
      builder->Copy(in.Part(i * bytes, bytes), block(travellers[i]));
    }
  }
  for (int i = 0; i < n; ++i) {
    builder->Copy(block(i), problem.ReceiveBlock((problem.rank - i + n) % n));
  }
}

constexpr Algorithm kAlgorithms[] = {
    {Collective::kAlltoall, "linear", nullptr, Linear},
    {Collective::kAlltoall, "pairwise", nullptr, Pairwise},
    {Collective::kAlltoall, "bruck", IsUniform, Bruck},
};

}  // namespace

std::span<const Algorithm> AlltoallAlgorithms() { return kAlgorithms; }

}  // namespace ferry::collective
