// Sessions, and the process sets from which their groups come (MPI 5.0, section 11.3). Their error
// handlers are in errors.cc, their buffers in point_to_point.cc, communicators made of groups in
// intercommunicator.cc.
//
// There are three process sets: the two of the standard, and the processes of this node.
#include <strings.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <string>
#include <utility>
#include <vector>

#include "mpi/api/call.h"
#include "mpi/api/function.h"
#include "mpi/comm/rank_set.h"
#include "mpi/p2p/send_buffer.h"

namespace ferry::mpi {
namespace {

constexpr char kThreadLevel[] = "thread_level";
constexpr char kMemoryKinds[] = "mpi_memory_alloc_kinds";

// ---- Thread levels ------------------------------------------------------------------------------

struct LevelName {
  int level;
  const char* name;
};
constexpr std::array<LevelName, 4> kLevels = {{
    {MPI_THREAD_SINGLE, "MPI_THREAD_SINGLE"},
    {MPI_THREAD_FUNNELED, "MPI_THREAD_FUNNELED"},
    {MPI_THREAD_SERIALIZED, "MPI_THREAD_SERIALIZED"},
    {MPI_THREAD_MULTIPLE, "MPI_THREAD_MULTIPLE"},
}};

const char* NameOfLevel(int level) {
  for (const LevelName& known : kLevels) {
    if (known.level == level) {
      return known.name;
    }
  }
  return "";
}

// The level that the info asks for: MPI_THREAD_SINGLE unless it says otherwise.
int LevelIn(Call& call, const Info* info) {
  const std::optional<std::string> asked =
      info == nullptr ? std::nullopt : info->Find(kThreadLevel);
  if (!asked) {
    return MPI_THREAD_SINGLE;
  }
  for (const LevelName& known : kLevels) {
    if (*asked == known.name) {
      return known.level;
    }
  }
  call.Refuse(MPI_ERR_INFO_VALUE, "the info key thread_level is \"" + *asked +
                                      "\"; it is MPI_THREAD_SINGLE, MPI_THREAD_FUNNELED, "
                                      "MPI_THREAD_SERIALIZED or MPI_THREAD_MULTIPLE");
  return MPI_THREAD_SINGLE;
}

// Where any thread may call anyway, sessions that ask for less allow that, too.
int LeastLevel() {
  return Process::phase() == Phase::kRunning && Process::thread_level() == MPI_THREAD_MULTIPLE
             ? MPI_THREAD_MULTIPLE
             : MPI_THREAD_SINGLE;
}

// ---- Process sets -------------------------------------------------------------------------------

RankSet World() { return Process::world().group(); }
RankSet Self() { return Process::self().group(); }

RankSet Node() {
  const int here = front_end->NodeOf(front_end->rank());
  std::vector<int> ranks;
  for (uint32_t rank = 0; rank < front_end->size(); ++rank) {
    if (front_end->NodeOf(rank) == here) {
      ranks.push_back(static_cast<int>(rank));
    }
  }
  return RankSet::Of(std::move(ranks));
}

struct ProcessSet {
  const char* name;
  RankSet (*members)();
};
// Names that begin with mpi:// are the standard's. As elsewhere, capitals and small letters are
// one.
constexpr std::array<ProcessSet, 3> kProcessSets = {{
    {"mpi://WORLD", World},
    {"mpi://SELF", Self},
    {"ferry://NODE", Node},
}};

// Null: the call has failed.
const ProcessSet* FindSet(Call& call, const char* name) {
  call.Need(name, "pset_name");
  for (const ProcessSet& set : kProcessSets) {
    if (call.ok() && strcasecmp(set.name, name) == 0) {
      return &set;
    }
  }
  if (call.ok()) {
    call.Refuse(MPI_ERR_ARG, "there is no process set \"" + std::string(name) +
                                 "\"; MPI_Session_get_nth_pset gives the names of those that there "
                                 "are");
  }
  return nullptr;
}

}  // namespace

// ---- Start and end ------------------------------------------------------------------------------

FERRY_MPI_CALL(int, MPI_Session_init,
               (MPI_Info info, MPI_Errhandler errhandler, MPI_Session* session)) {
  static std::atomic<uint32_t> made{0};
  Process::MakeErrorHandlers();
  Call call(FERRY_MPI_NAME);
  ErrorHandler* const handler = call.FindFor(ErrorHandler::Owner::kSession, errhandler);
  if (handler != nullptr) {
    call.Blame(Ref<ErrorHandler>::Share(handler), MPI_SESSION_NULL);
  }
  const Info* const asked = call.FindOrNull(info);
  call.Need(session, "session");
  const int level = std::max(call.ok() ? LevelIn(call, asked) : MPI_THREAD_SINGLE, LeastLevel());
  (void)call.Then([&] { return Process::OpenSession(level, HowToJoin()); });
  FERRY_RETURN_ERROR(call.result());
  call.Give(MakeRef<Session>(made.fetch_add(1) + 1, level,
                             asked == nullptr ? "" : asked->Find(kMemoryKinds).value_or(""),
                             Ref<ErrorHandler>::Share(handler)),
            session);
  if (!call.ok()) {
    Process::CloseSession();
  }
  return call.result();
}

// Objects that the program has made of the session stay, as the standard says: other handles of it
// may live on.
FERRY_MPI_CALL(int, MPI_Session_finalize, (MPI_Session * session)) {
  Call call(FERRY_MPI_NAME);
  call.Need(session, "session");
  if (!call.ok() || call.Find(*session) == nullptr) {
    return call.result();
  }
  Session* const ended = sessions.Remove(*session);
  FreeBuffer(ended);
  ended->Release();
  *session = MPI_SESSION_NULL;
  Process::CloseSession();
  return call.result();
}

FERRY_MPI_CALL(int, MPI_Session_get_info, (MPI_Session session, MPI_Info* info_used)) {
  Call call(FERRY_MPI_NAME);
  const Session* const found = call.Find(session);
  call.Need(info_used, "info_used");
  return call.Then([&] {
    call.Give(MakeRef<Info>(std::vector<Info::Entry>{
                  {kThreadLevel, NameOfLevel(found->thread_level)}, MemoryKindsFor(found)}),
              info_used);
  });
}

// ---- Process sets -------------------------------------------------------------------------------

// The info arguments of these have no keys yet that would mean anything.

FERRY_MPI_CALL(int, MPI_Session_get_num_psets,
               (MPI_Session session, MPI_Info info, int* npset_names)) {
  Call call(FERRY_MPI_NAME);
  (void)call.Find(session);
  (void)call.FindOrNull(info);
  call.Need(npset_names, "npset_names");
  return call.Then([&] { *npset_names = static_cast<int>(kProcessSets.size()); });
}

FERRY_MPI_CALL(int, MPI_Session_get_nth_pset,
               (MPI_Session session, MPI_Info info, int n, int* pset_len, char* pset_name)) {
  Call call(FERRY_MPI_NAME);
  (void)call.Find(session);
  (void)call.FindOrNull(info);
  call.Need(pset_len, "pset_len");
  if (call.ok()) {
    call.NeedCount(*pset_len, "pset_len");
    call.NeedArray(pset_name, *pset_len, "pset_name");
  }
  if (n < 0 || n >= static_cast<int>(kProcessSets.size())) {
    call.Refuse(MPI_ERR_ARG, "n is " + std::to_string(n) +
                                 "; the process sets have the numbers 0 to " +
                                 std::to_string(kProcessSets.size() - 1));
  }
  return call.Then(
      [&] { CopyString(kProcessSets[static_cast<size_t>(n)].name, pset_len, pset_name); });
}

FERRY_MPI_CALL(int, MPI_Session_get_pset_info,
               (MPI_Session session, const char* pset_name, MPI_Info* info)) {
  Call call(FERRY_MPI_NAME);
  (void)call.Find(session);
  const ProcessSet* const set = FindSet(call, pset_name);
  call.Need(info, "info");
  return call.Then([&] {
    call.Give(MakeRef<Info>(
                  std::vector<Info::Entry>{{"mpi_size", std::to_string(set->members().size())}}),
              info);
  });
}

// Where there is no such set, programs find MPI_GROUP_NULL if they go on.
FERRY_MPI_CALL(int, MPI_Group_from_session_pset,
               (MPI_Session session, const char* pset_name, MPI_Group* newgroup)) {
  Call call(FERRY_MPI_NAME);
  Session* const found = call.Find(session);
  call.Need(newgroup, "newgroup");
  FERRY_RETURN_ERROR(call.result());
  *newgroup = MPI_GROUP_NULL;
  const ProcessSet* const set = FindSet(call, pset_name);
  return call.Then(
      [&] { call.Give(MakeRef<Group>(set->members(), Ref<Session>::Share(found)), newgroup); });
}

}  // namespace ferry::mpi
