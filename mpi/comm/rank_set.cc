#include "mpi/comm/rank_set.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>

#include "common/counted.h"
#include "ferry/mpi/mpi.h"

namespace ferry::mpi {
namespace {

bool IsSequence(const std::vector<int>& values) {
  if (values.size() < 3) {
    return true;
  }
  int64_t stride = int64_t{values[1]} - values[0];
  for (size_t i = 2; i < values.size(); ++i) {
    if (int64_t{values[i]} - values[i - 1] != stride) {
      return false;
    }
  }
  return true;
}

Failure BadRank(size_t at, int rank, const RankSet& set) {
  return Failure{MPI_ERR_RANK, "ranks[" + std::to_string(at) + "] is " + std::to_string(rank) +
                                   "; the group has " +
                                   Counted(set.size(), "process", "processes")};
}

// Sets a mark for each of `ranks`; they must be distinct ranks of `set`.
Failure Mark(const RankSet& set, std::span<const int> ranks, std::vector<bool>* marks) {
  marks->assign(set.size(), false);
  for (size_t i = 0; i < ranks.size(); ++i) {
    int rank = ranks[i];
    if (rank < 0 || rank >= set.size()) {
      return BadRank(i, rank, set);
    }
    if ((*marks)[rank]) {
      return Failure{MPI_ERR_RANK, "ranks[" + std::to_string(i) + "] names rank " +
                                       std::to_string(rank) + " a second time"};
    }
    (*marks)[rank] = true;
  }
  return Failure{};
}

// The members of `set` whose presence in `other` is `wanted`.
RankSet Filter(const RankSet& set, const RankSet& other, bool wanted) {
  std::vector<int> members;
  for (int rank = 0; rank < set.size(); ++rank) {
    int world_rank = set.WorldRank(rank);
    if (other.Contains(world_rank) == wanted) {
      members.push_back(world_rank);
    }
  }
  return RankSet::Of(std::move(members));
}

std::string Text(const RankRange& range) {
  return "(" + std::to_string(range.first) + ", " + std::to_string(range.last) + ", " +
         std::to_string(range.stride) + ")";
}

}  // namespace

RankSet RankSet::Strided(int first, int stride, int size) {
  RankSet set;
  set.first_ = first;
  set.stride_ = stride;
  set.size_ = size;
  return set;
}

RankSet RankSet::Of(std::vector<int> world_ranks) {
  if (world_ranks.empty()) {
    return RankSet();
  }
  if (IsSequence(world_ranks)) {
    int stride = world_ranks.size() > 1 ? world_ranks[1] - world_ranks[0] : 1;
    return Strided(world_ranks[0], stride, static_cast<int>(world_ranks.size()));
  }
  auto list = std::make_shared<List>();
  list->members = std::move(world_ranks);
  list->by_world.resize(list->members.size());
  std::iota(list->by_world.begin(), list->by_world.end(), 0);
  std::sort(list->by_world.begin(), list->by_world.end(),
            [&](int a, int b) { return list->members[a] < list->members[b]; });
  RankSet set;
  set.size_ = static_cast<int>(list->members.size());
  set.list_ = std::move(list);
  return set;
}

std::vector<int> RankSet::WorldRanks() const {
  std::vector<int> ranks(size_);
  for (int rank = 0; rank < size_; ++rank) {
    ranks[rank] = WorldRank(rank);
  }
  return ranks;
}

int RankSet::RankInSequence(int world_rank) const {
  int64_t distance = int64_t{world_rank} - first_;
  if (distance % stride_ != 0) {
    return kAbsent;
  }
  int64_t rank = distance / stride_;
  return rank >= 0 && rank < size_ ? static_cast<int>(rank) : kAbsent;
}

int RankSet::RankInList(int world_rank) const {
  const List& list = *list_;
  auto at = std::lower_bound(list.by_world.begin(), list.by_world.end(), world_rank,
                             [&](int rank, int wanted) { return list.members[rank] < wanted; });
  return at != list.by_world.end() && list.members[*at] == world_rank ? *at : kAbsent;
}

bool RankSet::operator==(const RankSet& other) const {
  if (size_ != other.size_) {
    return false;
  }
  if (list_ != nullptr || other.list_ != nullptr) {
    // A sequence is never stored as a list, so one of each kind differ.
    return list_ != nullptr && other.list_ != nullptr &&
           (list_ == other.list_ || list_->members == other.list_->members);
  }
  return size_ == 0 || (first_ == other.first_ && (size_ == 1 || stride_ == other.stride_));
}

bool RankSet::SameMembers(const RankSet& other) const {
  if (size_ != other.size_) {
    return false;
  }
  for (int rank = 0; rank < size_; ++rank) {
    if (!other.Contains(WorldRank(rank))) {
      return false;
    }
  }
  return true;
}

RankSet Select(const RankSet& set, std::span<const int> ranks) {
  std::vector<int> members;
  members.reserve(ranks.size());
  for (int rank : ranks) {
    members.push_back(set.WorldRank(rank));
  }
  return RankSet::Of(std::move(members));
}

RankSet Union(const RankSet& a, const RankSet& b) {
  RankSet rest = Difference(b, a);
  if (rest.empty()) {
    return a;
  }
  std::vector<int> members = a.WorldRanks();
  std::vector<int> more = rest.WorldRanks();
  members.insert(members.end(), more.begin(), more.end());
  return RankSet::Of(std::move(members));
}

RankSet Intersection(const RankSet& a, const RankSet& b) { return Filter(a, b, true); }

RankSet Difference(const RankSet& a, const RankSet& b) { return Filter(a, b, false); }

Failure Include(const RankSet& set, std::span<const int> ranks, RankSet* result) {
  std::vector<bool> marks;
  FERRY_RETURN_FAILURE(Mark(set, ranks, &marks));
  *result = Select(set, ranks);
  return Failure{};
}

Failure Exclude(const RankSet& set, std::span<const int> ranks, RankSet* result) {
  std::vector<bool> marks;
  FERRY_RETURN_FAILURE(Mark(set, ranks, &marks));
  std::vector<int> members;
  for (int rank = 0; rank < set.size(); ++rank) {
    if (!marks[rank]) {
      members.push_back(set.WorldRank(rank));
    }
  }
  *result = RankSet::Of(std::move(members));
  return Failure{};
}

Failure ExpandRanges(const RankSet& set, std::span<const RankRange> ranges,
                     std::vector<int>* ranks) {
  ranks->clear();
  // More ranks than processes: one is there twice, which Mark says.
  for (size_t i = 0; i < ranges.size() && ranks->size() <= size_t(set.size()); ++i) {
    const RankRange& range = ranges[i];
    std::string name = "ranges[" + std::to_string(i) + "] " + Text(range);
    if (range.stride == 0) {
      return Failure{MPI_ERR_ARG, name + " has a stride of 0"};
    }
    int64_t distance = int64_t{range.last} - range.first;
    if ((distance > 0 && range.stride < 0) || (distance < 0 && range.stride > 0)) {
      return Failure{MPI_ERR_ARG, name + " has a stride that leads away from its last rank"};
    }
    // Both ends are checked before anything is stored, so that no range asks for more than the
    // group has. The last rank itself need not be met.
    int64_t steps = distance / range.stride;
    int64_t end = range.first + steps * range.stride;
    if (range.first < 0 || range.first >= set.size() || end < 0 || end >= set.size()) {
      return Failure{MPI_ERR_RANK,
                     name + " leaves the group's " + Counted(set.size(), "process", "processes")};
    }
    for (int64_t step = 0; step <= steps; ++step) {
      ranks->push_back(static_cast<int>(range.first + step * range.stride));
    }
  }
  std::vector<bool> marks;
  return Mark(set, *ranks, &marks);
}

int Compare(const RankSet& a, const RankSet& b) {
  if (a == b) {
    return MPI_IDENT;
  }
  return a.SameMembers(b) ? MPI_SIMILAR : MPI_UNEQUAL;
}

Failure TranslateRanks(const RankSet& from, std::span<const int> ranks, const RankSet& to,
                       std::span<int> translated) {
  for (size_t i = 0; i < ranks.size(); ++i) {
    int rank = ranks[i];
    if (rank == MPI_PROC_NULL) {
      translated[i] = MPI_PROC_NULL;
      continue;
    }
    if (rank < 0 || rank >= from.size()) {
      return BadRank(i, rank, from);
    }
    int found = to.RankOf(from.WorldRank(rank));
    translated[i] = found == RankSet::kAbsent ? MPI_UNDEFINED : found;
  }
  return Failure{};
}

Failure CheckSubset(const RankSet& group, const RankSet& whole) {
  for (int rank = 0; rank < group.size(); ++rank) {
    if (!whole.Contains(group.WorldRank(rank))) {
      return Failure{MPI_ERR_GROUP, "rank " + std::to_string(rank) +
                                        " of the group is no process of the communicator"};
    }
  }
  return Failure{};
}

}  // namespace ferry::mpi
