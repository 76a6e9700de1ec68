#include "client/mpi/comm/split_types.h"

#include <optional>
#include <string>

#include "client/mpi/comm/creation.h"
#include "client/mpi/runtime/process.h"

namespace ferry::mpi {
namespace {

constexpr char kResourceType[] = "mpi_hw_resource_type";

int NodeOf(const Comm& comm, int rank) {
  return front_end->NodeOf(static_cast<uint32_t>(comm.group().WorldRank(rank)));
}

bool HasSeveralNodes(const Comm& comm) {
  const int first = NodeOf(comm, 0);
  for (int rank = 1; rank < comm.size(); ++rank) {
    if (NodeOf(comm, rank) != first) {
      return true;
    }
  }
  return false;
}

}  // namespace

Result<Ref<Comm>> SplitByType(const Comm& parent, int split_type, int key, const Info* info) {
  const std::optional<std::string> resource =
      info == nullptr ? std::nullopt : info->Find(kResourceType);
  bool by_node = false;
  switch (split_type) {
    case MPI_COMM_TYPE_SHARED:
      by_node = true;
      break;
    case MPI_COMM_TYPE_HW_GUIDED:
    case MPI_COMM_TYPE_RESOURCE_GUIDED:
      by_node = resource == "mpi_shared_memory";
      break;
    case MPI_COMM_TYPE_HW_UNGUIDED:
      by_node = HasSeveralNodes(parent);
      break;
    case MPI_UNDEFINED:
      break;
    default:
      return Failure{MPI_ERR_ARG, "split_type is " + std::to_string(split_type)};
  }
  // All members take part, whatever they ask for: who gets nothing may be among others who do.
  return Split(parent, by_node ? NodeOf(parent, parent.rank()) : MPI_UNDEFINED, key);
}

}  // namespace ferry::mpi
