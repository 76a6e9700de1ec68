// Groups (MPI 5.0, section 7.3).
#include <span>
#include <utility>
#include <vector>

#include "mpi/api/call.h"
#include "mpi/api/function.h"
#include "mpi/comm/rank_set.h"
#include "mpi/init/process.h"

namespace ferry::mpi {
namespace {

using SetOperation = RankSet (*)(const RankSet&, const RankSet&);
using Selection = Failure (*)(const RankSet&, std::span<const int>, RankSet*);

// The empty group is always MPI_GROUP_EMPTY, with which programs compare (MPI 5.0, section 7.3.2).
int Give(Call& call, RankSet ranks, const Ref<Session>& session, MPI_Group* newgroup) {
  if (call.ok() && ranks.empty()) {
    *newgroup = MPI_GROUP_EMPTY;
    return call.result();
  }
  call.Give(MakeRef<Group>(std::move(ranks), session), newgroup);
  return call.result();
}

int Combine(Call call, SetOperation operation, MPI_Group group1, MPI_Group group2,
            MPI_Group* newgroup) {
  call.NeedRunning();
  const Group* const first = call.Find(group1);
  const Group* const second = call.Find(group2);
  call.Need(newgroup, "newgroup");
  return call.ok() ? Give(call, operation(first->ranks, second->ranks),
                          first->session ? first->session : second->session, newgroup)
                   : call.result();
}

int SelectRanks(Call call, Selection selection, MPI_Group group, int n, const int* ranks,
                MPI_Group* newgroup) {
  call.NeedRunning();
  const Group* const found = call.Find(group);
  call.NeedCount(n, "n");
  call.NeedArray(ranks, n, "ranks");
  call.Need(newgroup, "newgroup");
  FERRY_RETURN_ERROR(call.result());
  RankSet selected;
  call.Refuse(selection(found->ranks, {ranks, static_cast<size_t>(n)}, &selected));
  return Give(call, std::move(selected), found->session, newgroup);
}

int SelectRanges(Call call, Selection selection, MPI_Group group, int n, int (*ranges)[3],
                 MPI_Group* newgroup) {
  call.NeedRunning();
  const Group* const found = call.Find(group);
  call.NeedCount(n, "n");
  call.NeedArray(ranges, n, "ranges");
  call.Need(newgroup, "newgroup");
  FERRY_RETURN_ERROR(call.result());
  std::vector<RankRange> list;
  list.reserve(static_cast<size_t>(n));
  for (int i = 0; i < n; ++i) {
    list.push_back({ranges[i][0], ranges[i][1], ranges[i][2]});
  }
  std::vector<int> ranks;
  RankSet selected;
  call.Refuse(ExpandRanges(found->ranks, list, &ranks));
  if (call.ok()) {
    call.Refuse(selection(found->ranks, ranks, &selected));
  }
  return Give(call, std::move(selected), found->session, newgroup);
}

}  // namespace

// ---- Properties ---------------------------------------------------------------------------------

FERRY_MPI_CALL(int, MPI_Group_size, (MPI_Group group, int* size)) {
  Call call(FERRY_MPI_NAME);
  call.NeedRunning();
  const Group* const found = call.Find(group);
  call.Need(size, "size");
  return call.Then([&] { *size = found->ranks.size(); });
}

FERRY_MPI_CALL(int, MPI_Group_rank, (MPI_Group group, int* rank)) {
  Call call(FERRY_MPI_NAME);
  call.NeedRunning();
  const Group* const found = call.Find(group);
  call.Need(rank, "rank");
  return call.Then([&] {
    const int own = found->ranks.RankOf(Process::world().rank());
    *rank = own == RankSet::kAbsent ? MPI_UNDEFINED : own;
  });
}

FERRY_MPI_CALL(int, MPI_Group_compare, (MPI_Group group1, MPI_Group group2, int* result)) {
  Call call(FERRY_MPI_NAME);
  call.NeedRunning();
  const Group* const first = call.Find(group1);
  const Group* const second = call.Find(group2);
  call.Need(result, "result");
  return call.Then([&] { *result = Compare(first->ranks, second->ranks); });
}

FERRY_MPI_CALL(int, MPI_Group_translate_ranks,
               (MPI_Group group1, int n, const int ranks1[], MPI_Group group2, int ranks2[])) {
  Call call(FERRY_MPI_NAME);
  call.NeedRunning();
  const Group* const first = call.Find(group1);
  const Group* const second = call.Find(group2);
  call.NeedCount(n, "n");
  call.NeedArray(ranks1, n, "ranks1");
  call.NeedArray(ranks2, n, "ranks2");
  return call.Then([&] {
    const auto count = static_cast<size_t>(n);
    call.Refuse(TranslateRanks(first->ranks, {ranks1, count}, second->ranks, {ranks2, count}));
  });
}

// ---- Groups of groups ---------------------------------------------------------------------------

FERRY_MPI_CALL(int, MPI_Group_union, (MPI_Group group1, MPI_Group group2, MPI_Group* newgroup)) {
  return Combine(FERRY_MPI_NAME, Union, group1, group2, newgroup);
}

FERRY_MPI_CALL(int, MPI_Group_intersection,
               (MPI_Group group1, MPI_Group group2, MPI_Group* newgroup)) {
  return Combine(FERRY_MPI_NAME, Intersection, group1, group2, newgroup);
}

FERRY_MPI_CALL(int, MPI_Group_difference,
               (MPI_Group group1, MPI_Group group2, MPI_Group* newgroup)) {
  return Combine(FERRY_MPI_NAME, Difference, group1, group2, newgroup);
}

FERRY_MPI_CALL(int, MPI_Group_incl,
               (MPI_Group group, int n, const int ranks[], MPI_Group* newgroup)) {
  return SelectRanks(FERRY_MPI_NAME, Include, group, n, ranks, newgroup);
}

FERRY_MPI_CALL(int, MPI_Group_excl,
               (MPI_Group group, int n, const int ranks[], MPI_Group* newgroup)) {
  return SelectRanks(FERRY_MPI_NAME, Exclude, group, n, ranks, newgroup);
}

FERRY_MPI_CALL(int, MPI_Group_range_incl,
               (MPI_Group group, int n, int ranges[][3], MPI_Group* newgroup)) {
  return SelectRanges(FERRY_MPI_NAME, Include, group, n, ranges, newgroup);
}

FERRY_MPI_CALL(int, MPI_Group_range_excl,
               (MPI_Group group, int n, int ranges[][3], MPI_Group* newgroup)) {
  return SelectRanges(FERRY_MPI_NAME, Exclude, group, n, ranges, newgroup);
}

FERRY_MPI_CALL(int, MPI_Group_free, (MPI_Group * group)) {
  Call call(FERRY_MPI_NAME);
  call.NeedRunning();
  call.Need(group, "group");
  if (!call.ok() || call.Find(*group) == nullptr) {
    return call.result();
  }
  // MPI_GROUP_EMPTY is not removed; programs free what a call gave them, whichever group it was.
  if (Group* const freed = groups.Remove(*group); freed != nullptr) {
    freed->Release();
  }
  *group = MPI_GROUP_NULL;
  return call.result();
}

}  // namespace ferry::mpi
