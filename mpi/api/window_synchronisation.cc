// The synchronisation of windows (MPI 5.0, section 12.5).
#include <string>
#include <vector>

#include "mpi/api/call.h"
#include "mpi/api/compare_by_name.h"
#include "mpi/api/function.h"
#include "mpi/api/window_local.h"
#include "mpi/coll/table.h"
#include "mpi/rma/synchronisation.h"
#include "mpi/rma/window.h"
#include "shm/vain_looks.h"

namespace ferry::mpi {
namespace {

void NeedAssertions(Call& call, int assertions, int possible) {
  if ((assertions & ~possible) != 0) {
    call.Refuse(MPI_ERR_ASSERT,
                "the assertion " + std::to_string(assertions) + " has others than this call takes");
  }
}

// A rank of the window, or MPI_PROC_NULL.
void NeedRank(Call& call, const Win* win, int rank) {
  if (win != nullptr && !win->HasRank(rank) && rank != MPI_PROC_NULL) {
    call.Refuse(MPI_ERR_RANK, "rank " + std::to_string(rank) +
                                  " is none of the window, which has ranks 0 to " +
                                  std::to_string(win->size() - 1));
  }
  if (win != nullptr) {
    call.NotePeer(win->comm(), rank);
  }
}

// The members of a group as ranks of the window.
std::vector<int> RanksOf(Call& call, const Win* win, const Group* group) {
  std::vector<int> ranks;
  if (win == nullptr || group == nullptr) {
    return ranks;
  }
  for (const int in_job : group->ranks.WorldRanks()) {
    ranks.push_back(win->comm().RankOf(in_job));
    if (ranks.back() == RankSet::kAbsent) {
      call.Refuse(MPI_ERR_GROUP, "the group has a process that the window has not");
    }
  }
  return ranks;
}

// A call of a window alone.
int With(Call call, MPI_Win win, Failure (*use)(Win&)) {
  Win* const found = call.Find(win);
  return call.Then([&] { return use(*found); });
}

// `use`, of the window and the members of a group.
template <typename Use>
int WithGroup(Call call, MPI_Group group, int assertions, int possible, MPI_Win win, Use use) {
  Win* const found = call.Find(win);
  const Group* const members = call.Find(group);
  NeedAssertions(call, assertions, possible);
  const std::vector<int> ranks = RanksOf(call, found, members);
  return call.Then([&] { return use(*found, ranks); });
}

int FlushRank(const char* name, int rank, MPI_Win win) {
  if (FlushLocal(win, rank)) [[likely]] {
    return MPI_SUCCESS;
  }
  Call call(name);
  Win* const found = call.Find(win);
  NeedRank(call, found, rank);
  return call.Then([&] { return rank == MPI_PROC_NULL ? Failure{} : Flush(*found, rank); });
}

Failure FlushAllOf(Win& win) { return Flush(win, Epochs::kAnyTarget); }

constexpr int kFenceAssertions =
    MPI_MODE_NOSTORE | MPI_MODE_NOPUT | MPI_MODE_NOPRECEDE | MPI_MODE_NOSUCCEED;
constexpr int kPostAssertions = MPI_MODE_NOCHECK | MPI_MODE_NOSTORE | MPI_MODE_NOPUT;

// If one process gives these, all do (MPI 5.0, section 12.5.5); the others are each one's own.
const char* CommonAssertions(int assertions) {
  switch (assertions & (MPI_MODE_NOPRECEDE | MPI_MODE_NOSUCCEED)) {
    case 0:
      return "no MPI_MODE_NOPRECEDE/NOSUCCEED";
    case MPI_MODE_NOPRECEDE:
      return "MPI_MODE_NOPRECEDE";
    case MPI_MODE_NOSUCCEED:
      return "MPI_MODE_NOSUCCEED";
    default:
      return "MPI_MODE_NOPRECEDE, NOSUCCEED";
  }
}

void CompareFence(Call& call, Win* win, int assertions) {
  if (win == nullptr || !ComparesCalls()) [[likely]] {
    return;
  }
  if (call.ok()) {
    call.Refuse(win->epochs().CheckFence());
  }
  CompareByName(call, &win->comm(),
                {.refusal = "its assertions are wrong, or another epoch is open there",
                 .alike = CommonAssertions(assertions),
                 .alike_class = MPI_ERR_ASSERT});
}

}  // namespace

FERRY_MPI_CALL(int, MPI_Win_fence, (int assertions, MPI_Win win)) {
  Call call(FERRY_MPI_NAME);
  Win* const found = call.Find(win);
  NeedAssertions(call, assertions, kFenceAssertions);
  CompareFence(call, found, assertions);
  return call.Then([&] { return Fence(*found, assertions); });
}

FERRY_MPI_CALL(int, MPI_Win_lock, (int lock_type, int rank, int assertions, MPI_Win win)) {
  Call call(FERRY_MPI_NAME);
  Win* const found = call.Find(win);
  if (lock_type != MPI_LOCK_SHARED && lock_type != MPI_LOCK_EXCLUSIVE) {
    call.Refuse(MPI_ERR_LOCKTYPE, "the lock type " + std::to_string(lock_type) +
                                      " is neither MPI_LOCK_SHARED nor MPI_LOCK_EXCLUSIVE");
  }
  NeedRank(call, found, rank);
  NeedAssertions(call, assertions, MPI_MODE_NOCHECK);
  return call.Then([&] {
    const LockKind kind = lock_type == MPI_LOCK_SHARED ? LockKind::kShared : LockKind::kExclusive;
    return rank == MPI_PROC_NULL ? Failure{} : LockTarget(*found, rank, kind, assertions);
  });
}

FERRY_MPI_CALL(int, MPI_Win_unlock, (int rank, MPI_Win win)) {
  Call call(FERRY_MPI_NAME);
  Win* const found = call.Find(win);
  NeedRank(call, found, rank);
  return call.Then([&] { return rank == MPI_PROC_NULL ? Failure{} : UnlockTarget(*found, rank); });
}

FERRY_MPI_CALL(int, MPI_Win_lock_all, (int assertions, MPI_Win win)) {
  Call call(FERRY_MPI_NAME);
  Win* const found = call.Find(win);
  NeedAssertions(call, assertions, MPI_MODE_NOCHECK);
  return call.Then([&] { return LockAllTargets(*found, assertions); });
}

FERRY_MPI_CALL(int, MPI_Win_unlock_all, (MPI_Win win)) {
  return With(FERRY_MPI_NAME, win, UnlockAllTargets);
}

FERRY_MPI_CALL(int, MPI_Win_flush, (int rank, MPI_Win win)) {
  return FlushRank(FERRY_MPI_NAME, rank, win);
}

FERRY_MPI_CALL(int, MPI_Win_flush_all, (MPI_Win win)) {
  return With(FERRY_MPI_NAME, win, FlushAllOf);
}

// Where a put's source is free again, it has mostly come, too.
FERRY_MPI_CALL(int, MPI_Win_flush_local, (int rank, MPI_Win win)) {
  return FlushRank(FERRY_MPI_NAME, rank, win);
}

FERRY_MPI_CALL(int, MPI_Win_flush_local_all, (MPI_Win win)) {
  return With(FERRY_MPI_NAME, win, FlushAllOf);
}

FERRY_MPI_CALL(int, MPI_Win_sync, (MPI_Win win)) {
  return With(FERRY_MPI_NAME, win, [](Win&) {
    Sync();
    return Failure{};
  });
}

FERRY_MPI_CALL(int, MPI_Win_post, (MPI_Group group, int assertions, MPI_Win win)) {
  return WithGroup(FERRY_MPI_NAME, group, assertions, kPostAssertions, win, Post);
}

FERRY_MPI_CALL(int, MPI_Win_start, (MPI_Group group, int assertions, MPI_Win win)) {
  return WithGroup(FERRY_MPI_NAME, group, assertions, MPI_MODE_NOCHECK, win,
                   [&](Win& found, const std::vector<int>& targets) {
                     return Start(found, targets, assertions);
                   });
}

FERRY_MPI_CALL(int, MPI_Win_complete, (MPI_Win win)) { return With(FERRY_MPI_NAME, win, Complete); }

FERRY_MPI_CALL(int, MPI_Win_wait, (MPI_Win win)) { return With(FERRY_MPI_NAME, win, Wait); }

FERRY_MPI_CALL(int, MPI_Win_test, (MPI_Win win, int* flag)) {
  Call call(FERRY_MPI_NAME);
  Win* const found = call.Find(win);
  call.Need(flag, "flag");
  return call.Then([&] {
    bool is_over = false;
    const Failure failure = Test(*found, &is_over);
    *flag = is_over ? 1 : 0;
    if (!is_over) {
      shm::NoteVainLook();
    }
    return failure;
  });
}

}  // namespace ferry::mpi
