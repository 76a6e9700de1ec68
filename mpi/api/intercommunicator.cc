// Intercommunicators (MPI 5.0, section 7.6), and communicators made of groups alone (sections 7.4.2
// and 7.6.2). There are no sessions yet to take groups from; those of communicators serve as well.
#include <cstdint>
#include <string>
#include <utility>

#include "common/counted.h"
#include "mpi/api/call.h"
#include "mpi/api/function.h"
#include "mpi/comm/comm.h"
#include "mpi/comm/context_ids.h"
#include "mpi/comm/creation.h"
#include "mpi/comm/rank_set.h"
#include "mpi/init/process.h"

namespace ferry::mpi {
namespace {

std::string OutOf(const char* argument, int rank, int size) {
  return std::string(argument) + " is " + std::to_string(rank) + "; there are " +
         Counted(size, "process", "processes");
}

// The arguments that count at the leader only.
Bridge BridgeOf(int local_leader, MPI_Comm peer_comm, int remote_leader, int tag) {
  Bridge bridge;
  bridge.local_leader = local_leader;
  bridge.peer = comms.Find(peer_comm);
  bridge.remote_leader = remote_leader;
  bridge.tag = tag;
  if (bridge.peer == nullptr) {
    bridge.refused = {MPI_ERR_COMM, "peer_comm names no communicator"};
  } else if (!bridge.peer->IsPeer(remote_leader)) {
    bridge.refused = {MPI_ERR_RANK,
                      OutOf("remote_leader", remote_leader, bridge.peer->peers().size())};
  } else if (bridge.peer->WorldRank(remote_leader) == Process::world().rank()) {
    bridge.refused = {MPI_ERR_RANK, "remote_leader is the local leader itself"};
  } else if (tag < 0 || tag > kTagMax) {
    bridge.refused = {MPI_ERR_TAG, "tag is " + std::to_string(tag)};
  }
  return bridge;
}

}  // namespace

FERRY_MPI_CALL(int, MPI_Comm_test_inter, (MPI_Comm comm, int* flag)) {
  Call call(FERRY_MPI_NAME);
  const Comm* const found = call.Find(comm);
  call.Need(flag, "flag");
  return call.Then([&] { *flag = found->is_inter() ? 1 : 0; });
}

FERRY_MPI_CALL(int, MPI_Comm_remote_size, (MPI_Comm comm, int* size)) {
  Call call(FERRY_MPI_NAME);
  const Comm* const found = call.FindInter(comm);
  call.Need(size, "size");
  return call.Then([&] { *size = found->peers().size(); });
}

FERRY_MPI_CALL(int, MPI_Comm_remote_group, (MPI_Comm comm, MPI_Group* group)) {
  Call call(FERRY_MPI_NAME);
  const Comm* const found = call.FindInter(comm);
  call.Need(group, "group");
  return call.Then([&] { call.Give(MakeRef<Group>(found->peers(), found->session()), group); });
}

FERRY_MPI_CALL(int, MPI_Intercomm_create,
               (MPI_Comm local_comm, int local_leader, MPI_Comm peer_comm, int remote_leader,
                int tag, MPI_Comm* newintercomm)) {
  Call call(FERRY_MPI_NAME);
  const Comm* const local = call.FindIntra(local_comm);
  call.Need(newintercomm, "newintercomm");
  if (call.ok() && !local->IsPeer(local_leader)) {
    call.Refuse(MPI_ERR_RANK, OutOf("local_leader", local_leader, local->size()));
  }
  FERRY_RETURN_ERROR(call.result());
  call.Give(CreateInter(*local, BridgeOf(local_leader, peer_comm, remote_leader, tag)),
            newintercomm);
  return call.result();
}

FERRY_MPI_CALL(int, MPI_Intercomm_merge, (MPI_Comm intercomm, int high, MPI_Comm* newintracomm)) {
  Call call(FERRY_MPI_NAME);
  const Comm* const inter = call.FindInter(intercomm);
  call.Need(newintracomm, "newintracomm");
  return call.Then([&] { call.Give(Merge(*inter, high != 0), newintracomm); });
}

// ---- Made of groups -----------------------------------------------------------------------------

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

// False also for a handle that names none: only the leader's remote group must be one.
bool IsEmptyGroup(MPI_Group handle) {
  const Group* const group = groups.Find(handle);
  return group != nullptr && group->ranks.empty();
}

// A rank of `group`, which is a rank of MPI_COMM_WORLD then.
void NeedRank(Call& call, const Group* group, int rank, const char* argument) {
  if (call.ok() && (rank < 0 || rank >= group->ranks.size())) {
    call.Refuse(MPI_ERR_RANK, std::string(argument) + " is " + std::to_string(rank) +
                                  "; its group has " +
                                  Counted(group->ranks.size(), "process", "processes"));
  }
}

void GiveWith(Call& call, Result<Ref<Comm>> made, const Group& group, const Info* info,
              ErrorHandler* handler, MPI_Comm* newcomm) {
  if (made.ok()) {
    made.value()->SetSession(group.session);
    made.value()->SetErrorHandler(Ref<ErrorHandler>::Share(handler));
    if (info != nullptr) {
      made.value()->SetHints(WithHints(DefaultHints(), info->entries(), ServedMemoryKinds()));
    }
  }
  call.Give(std::move(made), newcomm);
}

// The new communicator's handler, which also hears of a failure to make it (MPI 5.0, section
// 7.4.2).
ErrorHandler* FindToBlame(Call& call, MPI_Errhandler errhandler) {
  ErrorHandler* const handler = call.FindFor(ErrorHandler::Owner::kComm, errhandler);
  if (handler != nullptr) {
    call.Blame(Ref<ErrorHandler>::Share(handler), MPI_COMM_NULL);
  }
  return handler;
}

}  // namespace

FERRY_MPI_CALL(int, MPI_Comm_create_from_group,
               (MPI_Group group, const char* stringtag, MPI_Info info, MPI_Errhandler errhandler,
                MPI_Comm* newcomm)) {
  Call call(FERRY_MPI_NAME);
  call.NeedRunning();
  ErrorHandler* const handler = FindToBlame(call, errhandler);
  const Group* const members = call.Find(group);
  NeedText(call, stringtag);
  const Info* const hints = call.FindOrNull(info);
  call.Need(newcomm, "newcomm");
  if (call.ok() && members->ranks.empty()) {  // then the call is local
    *newcomm = MPI_COMM_NULL;
    return call.result();
  }
  NeedMember(call, members, "group");
  return call.Then([&] {
    GiveWith(call,
             CreateGroup(Process::world(), members->ranks, TagOf(stringtag), Traffic::kFromGroup),
             *members, hints, handler, newcomm);
  });
}

// The local side meets first, as a communicator that the program never sees.
FERRY_MPI_CALL(int, MPI_Intercomm_create_from_groups,
               (MPI_Group local_group, int local_leader, MPI_Group remote_group, int remote_leader,
                const char* stringtag, MPI_Info info, MPI_Errhandler errhandler,
                MPI_Comm* newintercomm)) {
  Call call(FERRY_MPI_NAME);
  call.NeedRunning();
  ErrorHandler* const handler = FindToBlame(call, errhandler);
  const Group* const local = call.Find(local_group);
  NeedText(call, stringtag);
  const Info* const hints = call.FindOrNull(info);
  call.Need(newintercomm, "newintercomm");
  // Then the call is local, on every process that passes an empty group (MPI 5.0, section 7.6.2).
  if (call.ok() && (local->ranks.empty() || IsEmptyGroup(remote_group))) {
    *newintercomm = MPI_COMM_NULL;
    return call.result();
  }
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
    GiveWith(call, CreateInter(*side.value(), bridge), *local, hints, handler, newintercomm);
  });
}

}  // namespace ferry::mpi
