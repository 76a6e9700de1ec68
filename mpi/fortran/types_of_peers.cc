#include "mpi/fortran/types_of_peers.h"

namespace ferry::fortran {

Counts PeersOf(int number) {
  const MPI_Comm comm = HandleOf<MPI_Comm>(number);
  int count = 0;
  int is_inter = 0;
  if (IsNull(number) || PMPI_Comm_test_inter(comm, &is_inter) != MPI_SUCCESS) {
    return {};
  }
  (is_inter != 0 ? PMPI_Comm_remote_size : PMPI_Comm_size)(comm, &count);
  return {count, count};
}

Counts NeighboursOf(int number) {
  const MPI_Comm comm = HandleOf<MPI_Comm>(number);
  Counts found;
  int topology = MPI_UNDEFINED;
  if (IsNull(number) || PMPI_Topo_test(comm, &topology) != MPI_SUCCESS) {
    return found;
  }
  int count = 0;
  if (topology == MPI_CART) {
    PMPI_Cartdim_get(comm, &count);
    found = {2 * count, 2 * count};
  } else if (topology == MPI_GRAPH) {
    int rank = 0;
    PMPI_Comm_rank(comm, &rank);
    PMPI_Graph_neighbors_count(comm, rank, &count);
    found = {count, count};
  } else if (topology == MPI_DIST_GRAPH) {
    int weighted = 0;
    PMPI_Dist_graph_neighbors_count(comm, &found.in, &found.out, &weighted);
  }
  return found;
}

}  // namespace ferry::fortran
