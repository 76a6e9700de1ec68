// Communicators made of groups alone (MPI 5.0, sections 7.4.2 and 7.6.2). There are no sessions yet
// to take groups from; those of communicators serve as well.
#include <cstdint>
#include <string>
#include <utility>

#include "client/mpi/api/call.h"
#include "client/mpi/api/function.h"
#include "client/mpi/comm/comm.h"
#include "client/mpi/comm/context_ids.h"
#include "client/mpi/comm/creation.h"
#include "client/mpi/comm/rank_set.h"
#include "client/mpi/runtime/process.h"

namespace ferry::mpi {
namespace {

// The program's text as a tag of messages: FNV-1a. Texts of calls under way at the same time in
// overlapping groups meet by chance once in a thousand million.
int TagOf(const char* text) {
  uint32_t hash = 2166136261U;
  for (; *text != '\0'; ++text) {
    hash = (hash ^ static_cast<unsigned char>(*text)) * 16777619U;
  }
  return static_cast<int>(hash % (uint32_t{kTagMax} + 1));
}

void NeedText(Call& call, const char* text) {
  call.Need(text, "stringtag");
  if (call.ok() && std::string(text).size() >= MPI_MAX_STRINGTAG_LEN) {
    call.Refuse(MPI_ERR_ARG,
                "stringtag is longer than " + std::to_string(MPI_MAX_STRINGTAG_LEN - 1) + " bytes");
  }
}

void NeedMember(Call& call, const Group* group, const char* argument) {
  if (call.ok() && !group->ranks.Contains(Process::world().rank())) {
    call.Refuse(MPI_ERR_GROUP, std::string("this process is not in ") + argument);
  }
}

// A rank of `group`, which is a rank of MPI_COMM_WORLD then.
void NeedRank(Call& call, const Group* group, int rank, const char* argument) {
  if (call.ok() && (rank < 0 || rank >= group->ranks.size())) {
    call.Refuse(MPI_ERR_RANK, std::string(argument) + " is " + std::to_string(rank) +
                                  "; its group has " + std::to_string(group->ranks.size()) +
                                  " processes");
  }
}

void GiveWith(Call& call, Result<Ref<Comm>> made, const Info* info, ErrorHandler* handler,
              MPI_Comm* newcomm) {
  if (made.ok()) {
    made.value()->SetErrorHandler(Ref<ErrorHandler>::Share(handler));
    if (info != nullptr) {
      made.value()->SetHints(WithHints(DefaultHints(), info->entries(), ServedMemoryKinds()));
    }
  }
  call.Give(std::move(made), newcomm);
}

ErrorHandler* FindHandler(Call& call, MPI_Errhandler handle) {
  ErrorHandler* const handler = call.Find(handle);
  if (handler != nullptr && !handler->IsFor(ErrorHandler::Owner::kComm)) {
    call.Refuse(MPI_ERR_ERRHANDLER, "the error handler was made for another kind of object");
  }
  return handler;
}

}  // namespace

FERRY_MPI_CALL(int, Comm_create_from_group,
               (MPI_Group group, const char* stringtag, MPI_Info info, MPI_Errhandler errhandler,
                MPI_Comm* newcomm)) {
  Call call(FERRY_MPI_NAME);
  call.NeedRunning();
  const Group* const members = call.Find(group);
  NeedText(call, stringtag);
  const Info* const hints = call.FindOrNull(info);
  ErrorHandler* const handler = FindHandler(call, errhandler);
  call.Need(newcomm, "newcomm");
  NeedMember(call, members, "group");
  return call.Then([&] {
    GiveWith(call,
             CreateGroup(Process::world(), members->ranks, TagOf(stringtag), Traffic::kFromGroup),
             hints, handler, newcomm);
  });
}

// The local side meets first, as a communicator that nobody else sees.
FERRY_MPI_CALL(int, Intercomm_create_from_groups,
               (MPI_Group local_group, int local_leader, MPI_Group remote_group, int remote_leader,
                const char* stringtag, MPI_Info info, MPI_Errhandler errhandler,
                MPI_Comm* newintercomm)) {
  Call call(FERRY_MPI_NAME);
  call.NeedRunning();
  const Group* const local = call.Find(local_group);
  NeedText(call, stringtag);
  const Info* const hints = call.FindOrNull(info);
  ErrorHandler* const handler = FindHandler(call, errhandler);
  call.Need(newintercomm, "newintercomm");
  NeedMember(call, local, "local_group");
  NeedRank(call, local, local_leader, "local_leader");
  const bool leads = call.ok() && local->ranks.WorldRank(local_leader) == Process::world().rank();
  const Group* const remote = leads ? call.Find(remote_group) : nullptr;
  if (leads) {
    NeedRank(call, remote, remote_leader, "remote_leader");
  }
  if (call.ok() && leads && local->ranks.Contains(remote->ranks.WorldRank(remote_leader))) {
    call.Refuse(MPI_ERR_GROUP, "the remote leader is in local_group");
  }
  FERRY_RETURN_ERROR(call.result());
  Result<Ref<Comm>> side =
      CreateGroup(Process::world(), local->ranks, TagOf(stringtag), Traffic::kFromGroup);
  call.Refuse(side.failure());
  return call.Then([&] {
    Bridge bridge;
    bridge.local_leader = local_leader;
    bridge.peer = &Process::world();
    bridge.remote_leader = leads ? remote->ranks.WorldRank(remote_leader) : 0;
    bridge.tag = TagOf(stringtag);
    bridge.traffic = Traffic::kFromGroup;
    GiveWith(call, CreateInter(*side.value(), bridge), hints, handler, newintercomm);
  });
}

}  // namespace ferry::mpi
