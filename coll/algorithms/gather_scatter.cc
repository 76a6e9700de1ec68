#include <algorithm>

#include "coll/algorithms/algorithm.h"
#include "coll/algorithms/moves.h"

namespace ferry::collective {
namespace {

// A binomial tree of blocks of one size, counted from the root on.
class Subtrees {
 public:
  explicit Subtrees(const Problem& problem)
      : size_(problem.size),
        root_(problem.root),
        block_bytes_(problem.block_bytes),
        relative_((problem.rank - problem.root + problem.size) % problem.size) {
    while (mask_ < size_ && (relative_ & mask_) == 0) {
      mask_ *= 2;
    }
  }
  bool is_root() const { return relative_ == 0; }
  int Parent() const { return RankOf(relative_ - mask_); }
  // Blocks of this rank's subtree, its own included.
  int count() const { return std::min(mask_, size_ - relative_); }
  // Calls visit(child's rank, its first block counted from this rank's, its number of blocks), the
  // largest subtree first if `descending`.
  template <typename Visitor>
  void ForEachChild(bool descending, Visitor&& visit) const {
    for (int mask = descending ? mask_ / 2 : 1; mask > 0 && mask < mask_;
         mask = descending ? mask / 2 : mask * 2) {
      if (relative_ + mask < size_) {
        visit(RankOf(relative_ + mask), mask, std::min(mask, size_ - relative_ - mask));
      }
    }
  }
  // `count` blocks of `memory` from its `first` on.
  Range Blocks(const Range& memory, int first, int count) const {
    return memory.Part(static_cast<size_t>(first) * block_bytes_,
                       static_cast<size_t>(count) * block_bytes_);
  }
  // At the root: blocks [first, first + count) counted from its own, as one or two ranges of a
  // buffer in which they lie by rank.
  std::vector<Range> ByRank(const Range& buffer, int first, int count) const {
    const int begin = (root_ + first) % size_;
    const int before_end = std::min(count, size_ - begin);
    std::vector<Range> ranges = {Blocks(buffer, begin, before_end)};
    if (before_end < count) {
      ranges.push_back(Blocks(buffer, 0, count - before_end));
    }
    return ranges;
  }

 private:
  int RankOf(int relative) const { return (relative + root_) % size_; }

  int size_;
  int root_;
  size_t block_bytes_;
  int relative_;
  int mask_ = 1;
};

// ---- Gather -------------------------------------------------------------------------------------

Range OwnInput(const Problem& problem) { return {Place::kInput, 0, problem.block_bytes}; }

void LinearGather(const Problem& problem, ScheduleBuilder* builder) {
  std::vector<Range> blocks;
  if (problem.rank == problem.root) {
    for (int i = 0; i < problem.size; ++i) {
      blocks.push_back(problem.ReceiveBlock(i));
    }
  }
  AddLinearGather(builder, Everyone(problem), problem.root, blocks, OwnInput(problem));
  if (problem.rank == problem.root && !problem.in_place) {
    const Range to = problem.ReceiveBlock(problem.root);
    builder->Copy({Place::kInput, 0, to.size_bytes}, to);
  }
}

void BinomialGather(const Problem& problem, ScheduleBuilder* builder) {
  const Subtrees tree(problem);
  if (tree.is_root()) {
    const Range output{Place::kOutput, 0, problem.block_bytes * static_cast<size_t>(problem.size)};
    tree.ForEachChild(false, [&](int child, int first, int count) {
      const std::vector<Range> ranges = tree.ByRank(output, first, count);
      if (ranges.size() == 1) {
        builder->Receive(child, ranges.front());
        return;
      }
      const Range staging = builder->Scratch(ranges[0].size_bytes + ranges[1].size_bytes);
      builder->Receive(child, staging);
      builder->Copy(staging.Part(0, ranges[0].size_bytes), ranges[0]);
      builder->Copy(staging.Part(ranges[0].size_bytes, ranges[1].size_bytes), ranges[1]);
    });
    if (!problem.in_place) {
      builder->Copy(OwnInput(problem), problem.ReceiveBlock(problem.root));
    }
    return;
  }
  if (tree.count() == 1) {
    builder->Send(tree.Parent(), OwnInput(problem));
    return;
  }
  const Range blocks = builder->Scratch(problem.block_bytes * static_cast<size_t>(tree.count()));
  tree.ForEachChild(false, [&](int child, int first, int count) {
    builder->Receive(child, tree.Blocks(blocks, first, count));
  });
  builder->Copy(OwnInput(problem), tree.Blocks(blocks, 0, 1));
  builder->Send(tree.Parent(), blocks);
}

// ---- Scatter ------------------------------------------------------------------------------------

Range OwnOutput(const Problem& problem) { return {Place::kOutput, 0, problem.block_bytes}; }

void LinearScatter(const Problem& problem, ScheduleBuilder* builder) {
  std::vector<Range> blocks;
  if (problem.rank == problem.root) {
    for (int i = 0; i < problem.size; ++i) {
      blocks.push_back(problem.SendBlock(i));
    }
  }
  AddLinearScatter(builder, Everyone(problem), problem.root, blocks, OwnOutput(problem));
  if (problem.rank == problem.root && !problem.in_place) {
    const Range from = problem.SendBlock(problem.root);
    builder->Copy(from, {Place::kOutput, 0, from.size_bytes});
  }
}

void BinomialScatter(const Problem& problem, ScheduleBuilder* builder) {
  const Subtrees tree(problem);
  if (tree.is_root()) {
    const Range input{Place::kInput, 0, problem.block_bytes * static_cast<size_t>(problem.size)};
    tree.ForEachChild(true, [&](int child, int first, int count) {
      const std::vector<Range> ranges = tree.ByRank(input, first, count);
      if (ranges.size() == 1) {
        builder->Send(child, ranges.front());
        return;
      }
      const Range staging = builder->Scratch(ranges[0].size_bytes + ranges[1].size_bytes);
      builder->Copy(ranges[0], staging.Part(0, ranges[0].size_bytes));
      builder->Copy(ranges[1], staging.Part(ranges[0].size_bytes, ranges[1].size_bytes));
      builder->Send(child, staging);
    });
    if (!problem.in_place) {
      builder->Copy(problem.SendBlock(problem.root), OwnOutput(problem));
    }
    return;
  }
  if (tree.count() == 1) {
    builder->Receive(tree.Parent(), OwnOutput(problem));
    return;
  }
  const Range blocks = builder->Scratch(problem.block_bytes * static_cast<size_t>(tree.count()));
  builder->Receive(tree.Parent(), blocks);
  tree.ForEachChild(true, [&](int child, int first, int count) {
    builder->Send(child, tree.Blocks(blocks, first, count));
  });
  builder->Copy(tree.Blocks(blocks, 0, 1), OwnOutput(problem));
}

constexpr Algorithm kGather[] = {
    {Collective::kGather, "linear", nullptr, LinearGather},
    {Collective::kGather, "binomial", IsUniform, BinomialGather},
};
constexpr Algorithm kScatter[] = {
    {Collective::kScatter, "linear", nullptr, LinearScatter},
    {Collective::kScatter, "binomial", IsUniform, BinomialScatter},
};

}  // namespace

std::span<const Algorithm> GatherAlgorithms() { return kGather; }
std::span<const Algorithm> ScatterAlgorithms() { return kScatter; }

}  // namespace ferry::collective
