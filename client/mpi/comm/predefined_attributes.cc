#include "client/mpi/comm/predefined_attributes.h"

#include <atomic>

#include "client/core/front_end.h"
#include "client/mpi/group/rank_set.h"
#include "client/mpi/runtime/process.h"
#include "client/mpi/runtime/registries.h"

namespace ferry::mpi {

namespace {

// Whether MPI_Wtime counts from the same moment on all: it does on all processes of a node.
bool HasOneClock(const Comm& comm) {
  const int node = front_end->NodeOf(front_end->rank());
  for (const RankSet* group : {&comm.group(), &comm.peers()}) {
    for (int rank = 0; rank < group->size(); ++rank) {
      if (front_end->NodeOf(static_cast<uint32_t>(group->WorldRank(rank))) != node) {
        return false;
      }
    }
  }
  return true;
}

int UniverseSize(const config::Options& options) {
  return options.universe_size != 0 ? static_cast<int>(options.universe_size)
                                    : Process::world().size();
}

}  // namespace

bool IsPredefinedAttribute(int keyval) {
  return (keyval >= MPI_TAG_UB && keyval <= MPI_UNIVERSE_SIZE) ||
         (keyval >= MPI_WIN_BASE && keyval <= MPI_WIN_MODEL);
}

bool PredefinedAttribute(const Comm& comm, int keyval, void** value) {
  static int tag_max = kTagMax;
  static int every_process = MPI_ANY_SOURCE;
  static int no_process = MPI_PROC_NULL;
  static int no = 0;
  static int yes = 1;
  static int program = static_cast<int>(front_end->options().app);
  static int universe_size = UniverseSize(front_end->options());
  // Programs read it as a plain int; several threads may ask at a time.
  static std::atomic<int> last_used_code{0};
  static_assert(sizeof(last_used_code) == sizeof(int));
  switch (keyval) {
    case MPI_TAG_UB:
      *value = &tag_max;
      return true;
    case MPI_IO:
      *value = &every_process;
      return true;
    case MPI_HOST:
      *value = &no_process;
      return true;
    case MPI_WTIME_IS_GLOBAL:
      *value = HasOneClock(comm) ? &yes : &no;
      return true;
    case MPI_UNIVERSE_SIZE:
      *value = &universe_size;
      return true;
    case MPI_APPNUM:
      *value = &program;
      return front_end->options().app_size != 0;
    case MPI_LASTUSEDCODE:
      last_used_code.store(ProcessErrorCodes().LastUsed(), std::memory_order_relaxed);
      *value = &last_used_code;
      return true;
    default:
      return false;
  }
}

}  // namespace ferry::mpi
