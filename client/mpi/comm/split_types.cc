#include "client/mpi/comm/split_types.h"

#include <optional>
#include <string>

#include "client/mpi/comm/creation.h"
#include "client/mpi/comm/inter_creation.h"
#include "client/mpi/comm/numbers.h"
#include "client/mpi/runtime/process.h"

namespace ferry::mpi {
namespace {

constexpr char kResourceType[] = "mpi_hw_resource_type";
constexpr char kNode[] = "mpi_shared_memory";

int NodeOf(int world_rank) { return front_end->NodeOf(static_cast<uint32_t>(world_rank)); }

bool HasSeveralNodes(const Comm& comm) {
  const int first = NodeOf(comm.group().WorldRank(0));
  for (const RankSet* side : {&comm.group(), &comm.peers()}) {
    for (int rank = 0; rank < side->size(); ++rank) {
      if (NodeOf(side->WorldRank(rank)) != first) {
        return true;
      }
    }
  }
  return false;
}

}  // namespace

Result<Ref<Comm>> SplitByType(const Comm& parent, int split_type, int key, Info* info) {
  const std::optional<std::string> resource =
      info == nullptr ? std::nullopt : info->Find(kResourceType);
  bool by_node = false;
  switch (split_type) {
    case MPI_COMM_TYPE_SHARED:
      by_node = true;
      break;
    case MPI_COMM_TYPE_HW_GUIDED:
    case MPI_COMM_TYPE_RESOURCE_GUIDED:
      by_node = resource == kNode;
      break;
    case MPI_COMM_TYPE_HW_UNGUIDED:
      by_node = HasSeveralNodes(parent);
      break;
    case MPI_UNDEFINED:
      break;
    default:
      return Failure{MPI_ERR_ARG, "split_type is " + std::to_string(split_type)};
  }
  // All members take part, whatever they ask for: a member that gets nothing may be among others
  // that do.
  const int color = by_node ? NodeOf(WorldRankOfSelf()) : MPI_UNDEFINED;
  Result<Ref<Comm>> made =
      parent.is_inter() ? SplitInter(parent, color, key) : Split(parent, color, key);
  if (split_type == MPI_COMM_TYPE_HW_UNGUIDED && info != nullptr && made.ok() && made.value()) {
    (void)info->Set(kResourceType, kNode);  // so that the caller can ask for the same again
  }
  return made;
}

}  // namespace ferry::mpi
