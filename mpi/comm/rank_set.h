// Ordered sets of processes, named by their ranks in MPI_COMM_WORLD, of which a group, and each
// side of a communicator, consists. MPI 5.0, chapter 7.3 (group management).
//
// A set whose world ranks form an arithmetic sequence (the world, one process, every second one)
// stores three numbers, and answers both questions below in constant time. Any other set stores its
// members once, shared by its copies: O(1) from rank to world rank, O(log n) back.
//
// Immutable, hence safe to read by any number of threads; copying costs no more than a reference.
// Nothing here blocks. Functions that can fail return a Failure with the error class that MPI names
// and a text that names the argument and its value.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "mpi/base/failure.h"
#include "mpi/base/object.h"
#include "mpi/base/session.h"

namespace ferry::mpi {

// One (first, last, stride) triplet of MPI_Group_range_incl, with C's layout of int[3].
struct RankRange {
  int first;
  int last;
  int stride;
};

class RankSet {
 public:
  // No process has this rank in a set (it is neither MPI_UNDEFINED nor MPI_PROC_NULL).
  static constexpr int kAbsent = -1;

  // The empty set.
  RankSet() = default;
  // World ranks first, first + stride, ... `size` of them. `stride` may be negative, not 0.
  static RankSet Strided(int first, int stride, int size);
  // These world ranks in this order. They must be distinct and not negative.
  static RankSet Of(std::vector<int> world_ranks);

  int size() const { return size_; }
  bool empty() const { return size_ == 0; }
  // Returns true if the set is stored as three numbers; else it has a list of its members.
  bool compact() const { return list_ == nullptr; }
  // The world rank of the member `rank`, which must lie in 0 .. size() - 1.
  int WorldRank(int rank) const {
    return list_ == nullptr ? first_ + rank * stride_ : list_->members[rank];
  }
  // The rank in this set of the process `world_rank`, or kAbsent.
  int RankOf(int world_rank) const {
    if (list_ == nullptr && stride_ == 1) [[likely]] {
      const int rank = world_rank - first_;
      return static_cast<unsigned>(rank) < static_cast<unsigned>(size_) ? rank : kAbsent;
    }
    return list_ == nullptr ? RankInSequence(world_rank) : RankInList(world_rank);
  }
  bool Contains(int world_rank) const { return RankOf(world_rank) != kAbsent; }
  std::vector<int> WorldRanks() const;

  // Returns true if both have the same processes in the same order.
  bool operator==(const RankSet& other) const;
  // Returns true if both have the same processes in any order.
  bool SameMembers(const RankSet& other) const;

 private:
  struct List {
    std::vector<int> members;
    std::vector<int> by_world;  // ranks in this set, in order of their world ranks
  };

  int RankInSequence(int world_rank) const;
  int RankInList(int world_rank) const;

  std::shared_ptr<const List> list_;
  int first_ = 0;
  int stride_ = 1;
  int size_ = 0;
};

// All of `a` in its order, then the members that only `b` has, in the order of `b`.
RankSet Union(const RankSet& a, const RankSet& b);
// The members of both, in the order of `a`.
RankSet Intersection(const RankSet& a, const RankSet& b);
// The members of `a` that `b` has not, in the order of `a`.
RankSet Difference(const RankSet& a, const RankSet& b);

// The members `ranks`, which are there, each once, in this order.
RankSet Select(const RankSet& set, std::span<const int> ranks);
// Selects the members `ranks`. MPI_ERR_RANK for one that is out of range or there twice.
Failure Include(const RankSet& set, std::span<const int> ranks, RankSet* result);
// Selects all other members, in the order of `set`. Errors as for Include.
Failure Exclude(const RankSet& set, std::span<const int> ranks, RankSet* result);
// The ranks that triplets stand for, in order. MPI_ERR_ARG for a stride of 0 or one that leads away
// from `last`; MPI_ERR_RANK for ranks out of range or there twice.
Failure ExpandRanges(const RankSet& set, std::span<const RankRange> ranges,
                     std::vector<int>* ranks);

// MPI_IDENT, MPI_SIMILAR or MPI_UNEQUAL.
int Compare(const RankSet& a, const RankSet& b);

// Finds the ranks in `to` of the members `ranks` of `from`: MPI_UNDEFINED for those that are not in
// it, MPI_PROC_NULL for MPI_PROC_NULL. MPI_ERR_RANK for a rank that `from` has not. `translated`
// has as many elements as `ranks`.
Failure TranslateRanks(const RankSet& from, std::span<const int> ranks, const RankSet& to,
                       std::span<int> translated);

// The object of an MPI_Group.
class Group : public Object {
 public:
  explicit Group(RankSet ranks, Ref<Session> session = nullptr)
      : ranks(std::move(ranks)), session(std::move(session)) {}

  const RankSet ranks;
  const Ref<Session> session;  // that it comes from; null: it comes from MPI_COMM_WORLD
};

// MPI_ERR_GROUP unless all of `group` is in `whole`.
Failure CheckSubset(const RankSet& group, const RankSet& whole);

}  // namespace ferry::mpi
