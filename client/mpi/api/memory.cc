// Memory that MPI allocates (MPI 5.0, section 9.2).
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>
#include <unordered_set>

#include "client/mpi/api/function.h"
#include "client/mpi/error/fail.h"
#include "client/mpi/runtime/process.h"
#include "client/mpi/runtime/tables.h"

namespace ferry::mpi {
namespace {

constexpr size_t kAlignment = 64;

// What came from the system because the rank's heap had no room.
struct Overflow {
  std::mutex mutex;
  std::unordered_set<void*> blocks;
};
Overflow& overflow = *new Overflow();

// From the rank's heap, which peers and the network reach without a copy, if it has room.
void* Allocate(size_t bytes) {
  StatusOr<void*> shared = front_end->AllocateMemory(bytes, client::MemoryKind::kHost, 0);
  if (shared.ok()) {
    return *shared;
  }
  void* const memory =
      std::aligned_alloc(kAlignment, (bytes + kAlignment - 1) / kAlignment * kAlignment);
  if (memory != nullptr) {
    std::lock_guard lock(overflow.mutex);
    overflow.blocks.insert(memory);
  }
  return memory;
}

bool FreeOverflow(void* memory) {
  std::lock_guard lock(overflow.mutex);
  const bool found = overflow.blocks.erase(memory) != 0;
  if (found) {
    std::free(memory);
  }
  return found;
}

}  // namespace
}  // namespace ferry::mpi

using namespace ferry::mpi;  // NOLINT: the functions below are of no namespace

FERRY_MPI_CALL(int, Alloc_mem, (MPI_Aint size, MPI_Info info, void* result)) {
  if (const int error = CheckRunning("MPI_Alloc_mem"); error != MPI_SUCCESS) {
    return error;
  }
  if (size < 0 || result == nullptr) {
    return Fail(
        "MPI_Alloc_mem", nullptr, MPI_ERR_ARG,
        size < 0 ? "the size is " + std::to_string(size) : "the address for the result is null");
  }
  if (info != MPI_INFO_NULL && infos.Find(info) == nullptr) {
    return FailHandle("MPI_Alloc_mem", nullptr, MPI_ERR_INFO, "MPI_Info", info);
  }
  void* const memory = Allocate(size == 0 ? 1 : static_cast<size_t>(size));
  if (memory == nullptr) {
    return Fail("MPI_Alloc_mem", nullptr, MPI_ERR_NO_MEM,
                "no memory for " + std::to_string(size) + " bytes");
  }
  std::memcpy(result, &memory, sizeof(memory));
  return MPI_SUCCESS;
}

FERRY_MPI_CALL(int, Free_mem, (void* memory)) {
  if (const int error = CheckRunning("MPI_Free_mem"); error != MPI_SUCCESS) {
    return error;
  }
  if (memory == nullptr || FreeOverflow(memory)) {
    return MPI_SUCCESS;
  }
  const ferry::Status status = front_end->FreeMemory(memory);
  return status.ok() ? MPI_SUCCESS : Fail("MPI_Free_mem", nullptr, MPI_ERR_BASE, status.message());
}
