// Ferry's additions whose line of the table does not say how their arguments become C's.
#include "mpi/fortran/mpix_by_hand.h"

#include <vector>

#include "mpi/fortran/types_of_peers.h"

namespace ferry::fortran {

// ---- A datatype for each process or neighbour ---------------------------------------------------

#define FERRY_WITH_TYPES(Name, CountsOf)                                                          \
  void Name(decltype(&MPIX_##Name) call, void* sendbuf, int* partitions, MPI_Count* sendcounts,   \
            MPI_Aint* sdispls, int* sendtypes, void* recvbuf, MPI_Count* recvcounts,              \
            MPI_Aint* rdispls, int* recvtypes, int* comm, int* info, int* request, int* ierror) { \
    MPI_Request made = MPI_REQUEST_NULL;                                                          \
    const auto in_order = [&](void* given_sendbuf, auto... others) {                              \
      return call(given_sendbuf, *partitions, others...);                                         \
    };                                                                                            \
    const int code =                                                                              \
        WithTypes(in_order, CountsOf(*comm), sendbuf, sendcounts, sdispls, sendtypes, recvbuf,    \
                  recvcounts, rdispls, recvtypes, comm, HandleOf<MPI_Info>(*info), &made);        \
    *request = NumberOf(made);                                                                    \
    Give(ierror, code);                                                                           \
  }

FERRY_WITH_TYPES(Palltoallw_init, PeersOf)
FERRY_WITH_TYPES(Pneighbor_alltoallw_init, NeighboursOf)

// ---- Schedules ----------------------------------------------------------------------------------

namespace {

// Ranks and pieces that each step takes some of, in their order. A number below 0 is C's to report.
class Sequence {
 public:
  Sequence(const int* ranks, const int* pieces) : ranks_(ranks), pieces_(pieces) {}
  void Take(int count, const int** ranks, const int** pieces) {
    *ranks = ranks_;
    *pieces = pieces_;
    ranks_ += std::max(count, 0);
    pieces_ += std::max(count, 0);
  }

 private:
  const int* ranks_;
  const int* pieces_;
};

}  // namespace

void Pschedule_init(decltype(&MPIX_Pschedule_init) call, void* sendbuf, void* recvbuf,
                    int* partitions, MPI_Count* count, int* datatype, int* pieces, int* steps,
                    int* indegrees, int* sources, int* arriving, int* ops, int* outdegrees,
                    int* destinations, int* leaving, int* comm, int* info, int* request,
                    int* ierror) {
  std::vector<MPIX_Pstep> schedule(static_cast<size_t>(std::max(*steps, 0)));
  Sequence coming(sources, arriving);
  Sequence going(destinations, leaving);
  for (size_t i = 0; i < schedule.size(); ++i) {
    MPIX_Pstep& step = schedule[i];
    step.indegree = indegrees[i];
    step.op = HandleOf<MPI_Op>(ops[i]);
    step.outdegree = outdegrees[i];
    coming.Take(step.indegree, &step.sources, &step.arriving);
    going.Take(step.outdegree, &step.destinations, &step.leaving);
  }
  MPI_Request made = MPI_REQUEST_NULL;
  const int code = call(Buffer(sendbuf), Buffer(recvbuf), *partitions, *count,
                        HandleOf<MPI_Datatype>(*datatype), *pieces, *steps, schedule.data(),
                        HandleOf<MPI_Comm>(*comm), HandleOf<MPI_Info>(*info), &made);
  *request = NumberOf(made);
  Give(ierror, code);
}

}  // namespace ferry::fortran
