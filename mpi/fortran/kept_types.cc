#include "mpi/fortran/kept_types.h"

#include <mutex>

#include "mpi/fortran/binding.h"

namespace ferry::fortran {
namespace {

constexpr int kSets = 16;
constexpr int kInSet = 8;

// A recipe's datatype is in the set that its hash says.
struct Set {
  KeptType types[kInSet];
  int next = 0;  // to be replaced
};

enum class Phase { kBefore, kKeeping, kAfter };

struct Table {
  std::mutex mutex;  // of those who change it
  Phase phase = Phase::kBefore;
  Set sets[kSets];
};

// Not destroyed at exit: threads of the program may still run.
Table& TheTable() {
  static Table& table = *new Table;
  return table;
}

// Called by MPI_Finalize. Sections that callbacks hand over after it get datatypes of their own.
int FreeAll(MPI_Comm, int, void*, void*) {
  Table& table = TheTable();
  std::lock_guard lock(table.mutex);
  table.phase = Phase::kAfter;
  for (Set& set : table.sets) {
    for (KeptType& kept : set.types) {
      kept.Close();
    }
  }
  return MPI_SUCCESS;
}

// Has MPI_Finalize call FreeAll: it deletes the attributes of MPI_COMM_SELF before anything else
// ends (MPI 5.0, section 11.2.4). False: it never will.
bool WillBeFreed() {
  int has_begun = 0;
  int has_ended = 0;
  int keyval = MPI_KEYVAL_INVALID;
  PMPI_Initialized(&has_begun);
  PMPI_Finalized(&has_ended);
  if (has_begun == 0 || has_ended != 0 ||
      PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, FreeAll, &keyval, nullptr) != MPI_SUCCESS) {
    return false;
  }
  const bool is_set = PMPI_Comm_set_attr(MPI_COMM_SELF, keyval, nullptr) == MPI_SUCCESS;
  PMPI_Comm_free_keyval(&keyval);
  return is_set;
}

}  // namespace

bool KeptType::Close() {
  int none = 0;
  if (!users_.compare_exchange_strong(none, kClosed, std::memory_order_acquire,
                                      std::memory_order_relaxed)) {
    return false;
  }
  if (type_ != MPI_DATATYPE_NULL) {
    PMPI_Type_free(&type_);
  }
  return true;
}

// Threads that look in vain count themselves in users_ while the type is closed, too, so this adds
// to users_ and does not store: their numbers must not be lost.
void KeptType::Open(const Recipe& recipe, MPI_Datatype type) {
  recipe_ = recipe;
  type_ = type;
  number_ = NumberOf(type);
  hash_.store(recipe.hash(), std::memory_order_relaxed);
  users_.fetch_add(1 - kClosed, std::memory_order_release);
}

KeptType* FindKept(const Recipe& recipe) {
  for (KeptType& kept : TheTable().sets[recipe.hash() % kSets].types) {
    if (kept.Enter(recipe)) {
      return &kept;
    }
  }
  return nullptr;
}

KeptType* Keep(const Recipe& recipe, MPI_Datatype type) {
  Table& table = TheTable();
  const std::unique_lock lock(table.mutex, std::try_to_lock);
  if (!lock.owns_lock()) {
    return nullptr;
  }
  if (table.phase == Phase::kBefore && WillBeFreed()) {
    table.phase = Phase::kKeeping;
  }
  if (table.phase != Phase::kKeeping) {
    return nullptr;
  }
  Set& set = table.sets[recipe.hash() % kSets];
  KeptType& kept = set.types[set.next];
  set.next = (set.next + 1) % kInSet;
  if (!kept.Close()) {
    return nullptr;
  }
  kept.Open(recipe, type);
  return &kept;
}

}  // namespace ferry::fortran
