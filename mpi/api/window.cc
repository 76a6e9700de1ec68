// Windows: how they are made, and what they are (MPI 5.0, section 12.2).
#include "mpi/rma/window.h"

#include <cstring>
#include <string>
#include <utility>

#include "mpi/api/call.h"
#include "mpi/api/compare_by_name.h"
#include "mpi/api/function.h"
#include "mpi/rma/attached.h"
#include "mpi/rma/creation.h"

namespace ferry::mpi {
namespace {

// The first of the arguments that is wrong.
Failure CheckMemory(int64_t size_bytes, int64_t disp_unit) {
  if (size_bytes < 0) {
    return {MPI_ERR_SIZE, "the size is " + std::to_string(size_bytes)};
  }
  if (disp_unit <= 0) {
    return {MPI_ERR_DISP,
            "the displacement unit is " + std::to_string(disp_unit) + "; it must be positive"};
  }
  return {};
}

// An info object that does not exist is told to the other members, as are other mistakes.
Failure FindHints(MPI_Info handle, WindowWish* wish) {
  if (handle == MPI_INFO_NULL) {
    return {};
  }
  wish->info = infos.Find(handle);
  return wish->info != nullptr ? Failure{}
                               : Failure{MPI_ERR_INFO, "info names no info object: was it freed?"};
}

// `put_base`: a function of the window's memory, for where the program wants to have its address.
template <typename PutBase>
int Make(Call&& call, MPI_Comm comm, MPI_Info info, WindowWish wish, MPI_Win* win,
         PutBase&& put_base) {
  Comm* const parent = call.FindIntra(comm);
  CompareByName(call, parent);
  FERRY_RETURN_ERROR(call.result());
  if (wish.refused.ok() && win == nullptr) {
    wish.refused = {MPI_ERR_ARG, "win is a null pointer"};
  }
  if (const Failure hints = FindHints(info, &wish); wish.refused.ok()) {
    wish.refused = hints;
  }
  void* base = nullptr;
  call.Give(MakeWindow(*parent, wish, &base), win);
  return call.Then([&] { put_base(base); });
}

int Create(Call call, void* base, MPI_Aint size, MPI_Aint disp_unit, MPI_Info info, MPI_Comm comm,
           MPI_Win* win) {
  WindowWish wish;
  wish.flavor = MPI_WIN_FLAVOR_CREATE;
  wish.base = base;
  wish.size_bytes = size;
  wish.disp_unit = disp_unit;
  wish.refused = CheckMemory(size, disp_unit);
  if (wish.refused.ok() && size > 0 && base == nullptr) {
    wish.refused = {MPI_ERR_BASE,
                    "base is a null pointer, but the size is " + std::to_string(size)};
  }
  return Make(std::move(call), comm, info, std::move(wish), win, [](void*) {});
}

int Allocate(Call call, int flavor, MPI_Aint size, MPI_Aint disp_unit, MPI_Info info, MPI_Comm comm,
             void* baseptr, MPI_Win* win) {
  WindowWish wish;
  wish.flavor = flavor;
  wish.size_bytes = size;
  wish.disp_unit = disp_unit;
  wish.refused = CheckMemory(size, disp_unit);
  if (wish.refused.ok() && baseptr == nullptr) {
    wish.refused = {MPI_ERR_ARG, "baseptr is a null pointer"};
  }
  return Make(std::move(call), comm, info, std::move(wish), win,
              [baseptr](void* base) { std::memcpy(baseptr, &base, sizeof(base)); });
}

// The first rank that has memory stands for MPI_PROC_NULL.
int RankToQuery(const Win& win, int rank) {
  for (int each = 0; rank == MPI_PROC_NULL && each < win.size(); ++each) {
    if (win.target(each).memory.size_bytes != 0) {
      return each;
    }
  }
  return rank;
}

// Memory that this process does not reach by loads and stores has no size here.
template <typename Unit>
int Query(Call call, MPI_Win win, int rank, MPI_Aint* size, Unit* disp_unit, void* baseptr) {
  const Win* const found = call.Find(win);
  if (found != nullptr && found->is_dynamic()) {
    call.Refuse(MPI_ERR_RMA_FLAVOR, "a dynamic window has no memory that could be shared");
  }
  if (found != nullptr && !found->HasRank(rank) && rank != MPI_PROC_NULL) {
    call.Refuse(MPI_ERR_RANK, "rank " + std::to_string(rank) +
                                  " is none of the window, which has ranks 0 to " +
                                  std::to_string(found->size() - 1));
  }
  call.Need(size, "size", disp_unit, "disp_unit", baseptr, "baseptr");
  return call.Then([&] {
    const int asked = RankToQuery(*found, rank);
    const WindowTarget* const target = asked == MPI_PROC_NULL ? nullptr : &found->target(asked);
    void* const base = target == nullptr ? nullptr : target->memory.mapped;
    *size = base == nullptr ? 0 : static_cast<MPI_Aint>(target->memory.size_bytes);
    *disp_unit = target == nullptr ? 1 : static_cast<Unit>(target->disp_unit);
    std::memcpy(baseptr, &base, sizeof(base));
  });
}

Win* FindDynamic(Call& call, MPI_Win win) {
  Win* const found = call.Find(win);
  if (found != nullptr && !found->is_dynamic()) {
    call.Refuse(MPI_ERR_RMA_FLAVOR, "memory is attached to windows of MPI_Win_create_dynamic only");
  }
  return call.ok() ? found : nullptr;
}

}  // namespace

FERRY_MPI_TWINS(MPI_Win_create,
                (void* base, MPI_Aint size, Displacement disp_unit, MPI_Info info, MPI_Comm comm,
                 MPI_Win* win),
                Create(FERRY_MPI_NAME, base, size, disp_unit, info, comm, win));

FERRY_MPI_TWINS(MPI_Win_allocate,
                (MPI_Aint size, Displacement disp_unit, MPI_Info info, MPI_Comm comm, void* baseptr,
                 MPI_Win* win),
                Allocate(FERRY_MPI_NAME, MPI_WIN_FLAVOR_ALLOCATE, size, disp_unit, info, comm,
                         baseptr, win));

FERRY_MPI_TWINS(MPI_Win_allocate_shared,
                (MPI_Aint size, Displacement disp_unit, MPI_Info info, MPI_Comm comm, void* baseptr,
                 MPI_Win* win),
                Allocate(FERRY_MPI_NAME, MPI_WIN_FLAVOR_SHARED, size, disp_unit, info, comm,
                         baseptr, win));

FERRY_MPI_TWINS(MPI_Win_shared_query,
                (MPI_Win win, int rank, MPI_Aint* size, Displacement* disp_unit, void* baseptr),
                Query(FERRY_MPI_NAME, win, rank, size, disp_unit, baseptr));

// ---- Dynamic windows ----------------------------------------------------------------------------

FERRY_MPI_CALL(int, MPI_Win_create_dynamic, (MPI_Info info, MPI_Comm comm, MPI_Win* win)) {
  WindowWish wish;
  wish.flavor = MPI_WIN_FLAVOR_DYNAMIC;
  return Make(FERRY_MPI_NAME, comm, info, std::move(wish), win, [](void*) {});
}

FERRY_MPI_CALL(int, MPI_Win_attach, (MPI_Win win, void* base, MPI_Aint size)) {
  Call call(FERRY_MPI_NAME);
  Win* const found = FindDynamic(call, win);
  if (size < 0) {
    call.Refuse(MPI_ERR_SIZE, "the size is " + std::to_string(size));
  }
  if (size > 0 && base == nullptr) {
    call.Refuse(MPI_ERR_BASE, "base is a null pointer, but the size is " + std::to_string(size));
  }
  return call.Then([&] { return found->attached().Attach(base, static_cast<uint64_t>(size)); });
}

FERRY_MPI_CALL(int, MPI_Win_detach, (MPI_Win win, const void* base)) {
  Call call(FERRY_MPI_NAME);
  Win* const found = FindDynamic(call, win);
  return call.Then([&] { return found->attached().Detach(base); });
}

// ---- The end, and what a window is --------------------------------------------------------------

// A window that cannot end in good order, because a process of it is gone, is gone all the same.
FERRY_MPI_CALL(int, MPI_Win_free, (MPI_Win * win)) {
  Call call(FERRY_MPI_NAME);
  call.NeedRunning();
  call.Need(win, "win");
  Win* const found = call.ok() ? call.Find(*win) : nullptr;
  if (call.ok()) {
    call.Refuse(found->epochs().CheckFree());
    CompareByName(call, &found->comm(), {.refusal = "an epoch is open there", .ends = true});
  }
  if (call.ok()) {
    call.Refuse(found->attributes().DeleteAll(*win));
  }
  FERRY_RETURN_ERROR(call.result());
  call.Refuse(EndWindow(*found));
  wins.Remove(*win)->Release();
  *win = MPI_WIN_NULL;
  return call.result();
}

FERRY_MPI_CALL(int, MPI_Win_get_group, (MPI_Win win, MPI_Group* group)) {
  Call call(FERRY_MPI_NAME);
  const Win* const found = call.Find(win);
  call.Need(group, "group");
  return call.Then([&] { call.Give(MakeRef<Group>(found->comm().group()), group); });
}

FERRY_MPI_CALL(int, MPI_Win_set_info, (MPI_Win win, MPI_Info info)) {
  Call call(FERRY_MPI_NAME);
  Win* const found = call.Find(win);
  const Info* const given = call.FindOrNull(info);
  return call.Then([&] {
    if (given != nullptr) {
      found->TakeHints(given->entries());
    }
  });
}

FERRY_MPI_CALL(int, MPI_Win_get_info, (MPI_Win win, MPI_Info* info_used)) {
  Call call(FERRY_MPI_NAME);
  const Win* const found = call.Find(win);
  call.Need(info_used, "info_used");
  return call.Then([&] {
    std::vector<Info::Entry> hints = found->hints();
    hints.push_back(MemoryKindsFor(found->comm().session().get()));
    call.Give(MakeRef<Info>(std::move(hints)), info_used);
  });
}

FERRY_MPI_CALL(int, MPI_Win_set_name, (MPI_Win win, const char* win_name)) {
  Call call(FERRY_MPI_NAME);
  Win* const found = call.Find(win);
  call.Need(win_name, "win_name");
  return call.Then(
      [&] { found->SetName(std::string(win_name).substr(0, MPI_MAX_OBJECT_NAME - 1)); });
}

FERRY_MPI_CALL(int, MPI_Win_get_name, (MPI_Win win, char* win_name, int* resultlen)) {
  Call call(FERRY_MPI_NAME);
  call.NeedRunning();
  const Win* const found = win == MPI_WIN_NULL ? nullptr : call.Find(win);
  call.Need(win_name, "win_name", resultlen, "resultlen");
  return call.Then([&] {
    const std::string name = found == nullptr ? "MPI_WIN_NULL" : found->name();
    CopyValue(name, MPI_MAX_OBJECT_NAME - 1, win_name);
    *resultlen = static_cast<int>(name.size());
  });
}

}  // namespace ferry::mpi
