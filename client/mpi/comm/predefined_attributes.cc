#include "client/mpi/comm/predefined_attributes.h"

#include <atomic>

#include "client/mpi/runtime/process.h"
#include "client/mpi/runtime/registries.h"

namespace ferry::mpi {

bool IsPredefinedAttribute(int keyval) {
  return (keyval >= MPI_TAG_UB && keyval <= MPI_LASTUSEDCODE) ||
         (keyval >= MPI_WIN_BASE && keyval <= MPI_WIN_MODEL);
}

bool PredefinedAttribute(int keyval, void** value) {
  static int tag_max = kTagMax;
  static int every_process = MPI_ANY_SOURCE;
  static int no_process = MPI_PROC_NULL;
  static int no = 0;
  // Programs read them as plain ints; several threads may ask at a time.
  static std::atomic<int> universe_size{0};
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
      *value = &no;
      return true;
    case MPI_UNIVERSE_SIZE:
      universe_size.store(Process::world().size(), std::memory_order_relaxed);
      *value = &universe_size;
      return true;
    case MPI_LASTUSEDCODE:
      last_used_code.store(ProcessErrorCodes().LastUsed(), std::memory_order_relaxed);
      *value = &last_used_code;
      return true;
    default:
      return false;
  }
}

}  // namespace ferry::mpi
