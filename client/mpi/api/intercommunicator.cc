// Intercommunicators (MPI 5.0, section 7.6).
#include <string>
#include <utility>

#include "client/mpi/api/call.h"
#include "client/mpi/api/function.h"
#include "client/mpi/comm/comm.h"
#include "client/mpi/comm/creation.h"
#include "client/mpi/comm/rank_set.h"
#include "client/mpi/runtime/process.h"

namespace ferry::mpi {
namespace {

std::string OutOf(const char* argument, int rank, int size) {
  return std::string(argument) + " is " + std::to_string(rank) + "; there are " +
         std::to_string(size) + " processes";
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

FERRY_MPI_CALL(int, Comm_test_inter, (MPI_Comm comm, int* flag)) {
  Call call(FERRY_MPI_NAME);
  const Comm* const found = call.Find(comm);
  call.Need(flag, "flag");
  return call.Then([&] { *flag = found->is_inter() ? 1 : 0; });
}

FERRY_MPI_CALL(int, Comm_remote_size, (MPI_Comm comm, int* size)) {
  Call call(FERRY_MPI_NAME);
  const Comm* const found = call.FindInter(comm);
  call.Need(size, "size");
  return call.Then([&] { *size = found->peers().size(); });
}

FERRY_MPI_CALL(int, Comm_remote_group, (MPI_Comm comm, MPI_Group* group)) {
  Call call(FERRY_MPI_NAME);
  const Comm* const found = call.FindInter(comm);
  call.Need(group, "group");
  return call.Then([&] { call.Give(MakeRef<Group>(found->peers()), group); });
}

FERRY_MPI_CALL(int, Intercomm_create,
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

FERRY_MPI_CALL(int, Intercomm_merge, (MPI_Comm intercomm, int high, MPI_Comm* newintracomm)) {
  Call call(FERRY_MPI_NAME);
  const Comm* const inter = call.FindInter(intercomm);
  call.Need(newintracomm, "newintracomm");
  return call.Then([&] { call.Give(Merge(*inter, high != 0), newintracomm); });
}

}  // namespace ferry::mpi
