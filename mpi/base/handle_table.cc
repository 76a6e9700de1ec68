#include "mpi/base/handle_table.h"

#include <sys/mman.h>

#include <new>

namespace ferry::mpi {
namespace {

// Addresses are reserved for so many handles of a kind; memory is only used for those in use.
constexpr size_t kMaxHandles = size_t{1} << 24;

// The number of the first of them: below it lie predefined handles and room for those of later
// versions of the standard (MPI 5.0, section 20.4.5).
constexpr uintptr_t kFirstNumber = 4096;

}  // namespace

bool HandleCells::Reserve() {
  if (base_.load(std::memory_order_relaxed) != 0) {
    return true;
  }
  void* const memory = mmap(nullptr, kMaxHandles * sizeof(Cell), PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) {
    return false;
  }
  base_.store(reinterpret_cast<uintptr_t>(memory), std::memory_order_release);
  return true;
}

uintptr_t HandleCells::Add(void* object) {
  std::lock_guard lock(mutex_);
  if (!Reserve()) {
    return 0;
  }
  uintptr_t handle = free_;
  const size_t used = used_.load(std::memory_order_relaxed);
  if (handle != 0) {
    free_ = reinterpret_cast<Cell*>(handle)->next_free;
  } else if (used < kMaxHandles) {
    handle = base_.load(std::memory_order_relaxed) + used * sizeof(Cell);
    new (reinterpret_cast<void*>(handle)) Cell();
    used_.store(used + 1, std::memory_order_release);  // Pairs with Find: publishes the cell.
  } else {
    return 0;
  }
  reinterpret_cast<Cell*>(handle)->object.store(object, std::memory_order_release);
  ++count_;
  return handle;
}

void* HandleCells::Remove(uintptr_t handle) {
  std::lock_guard lock(mutex_);
  void* const object = handle < kPredefinedHandles ? nullptr : Find(handle);
  if (object != nullptr) {
    auto* const cell = reinterpret_cast<Cell*>(handle);
    cell->object.store(nullptr, std::memory_order_release);
    cell->next_free = free_;
    free_ = handle;
    --count_;
  }
  return object;
}

int HandleCells::NumberOf(uintptr_t handle) const {
  if (handle < kPredefinedHandles) {
    return static_cast<int>(handle);
  }
  const uintptr_t offset = handle - base_.load(std::memory_order_acquire);  // Pairs with Reserve.
  if (offset >= used_.load(std::memory_order_acquire) * sizeof(Cell) ||
      offset % sizeof(Cell) != 0) {
    return 0;
  }
  return static_cast<int>(kFirstNumber + offset / sizeof(Cell));
}

uintptr_t HandleCells::HandleOf(int number) const {
  if (number < 0) {
    return 0;
  }
  const auto index = static_cast<uintptr_t>(number);
  if (index < kPredefinedHandles) {
    return index;
  }
  if (index < kFirstNumber || index - kFirstNumber >= used_.load(std::memory_order_acquire)) {
    return 0;
  }
  return base_.load(std::memory_order_acquire) + (index - kFirstNumber) * sizeof(Cell);
}

size_t HandleCells::count() const {
  std::lock_guard lock(mutex_);
  return count_;
}

// Initialised before any constructor runs: a program may call MPI from one.
constinit HandleTable<Comm, MPI_Comm> comms;
constinit HandleTable<Datatype, MPI_Datatype> datatypes;
constinit HandleTable<ErrorHandler, MPI_Errhandler> error_handlers;
constinit HandleTable<Group, MPI_Group> groups;
constinit HandleTable<Info, MPI_Info> infos;
constinit HandleTable<MatchedMessage, MPI_Message> matched_messages;
constinit HandleTable<Op, MPI_Op> ops;
constinit HandleTable<Request, MPI_Request> requests;
constinit HandleTable<Session, MPI_Session> sessions;
constinit HandleTable<Win, MPI_Win> wins;

}  // namespace ferry::mpi
