// The object of an MPI_Win: memory that each process of a group lets the others put to, get from
// and change, without taking part (MPI 5.0, chapter 12).
//
// Operations are libferry's one-sided ones (client/api/one_sided.h). The memory that a process
// exposes is *shared* (of libferry's heap, or a segment of the window's own): ranks of its node map
// it, those of other nodes reach it by its segment; or only *streams* reach it; or it is *private*
// memory of the program's own (private_memory.h).
//
// Calling thread: any that the thread level allows, as the standard says: not two at a time in
// calls that are collective, or in one epoch with one target.
#pragma once

#include <mpi.h>

#include <atomic>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "client/api/one_sided.h"
#include "client/api/word_wait.h"
#include "mpi/base/attribute.h"
#include "mpi/base/error_handler.h"
#include "mpi/base/failure.h"
#include "mpi/base/object.h"
#include "mpi/comm/comm.h"
#include "mpi/info/info.h"
#include "mpi/rma/control.h"
#include "mpi/rma/epochs.h"
#include "shm/layout/descriptor.h"
#include "shm/segment.h"

namespace ferry::mpi {

class AttachedMemory;
class Operation;
class PrivateService;

// How others reach the memory that a process exposes.
enum class Reach : uint32_t { kNone, kShared, kByStream, kPrivate };

// Memory that a process exposes, as this process reaches it.
struct Exposed {
  Reach reach = Reach::kNone;
  uint64_t address = 0;  // there; of what is attached to a dynamic window
  uint64_t size_bytes = 0;
  client::RemoteAddress place;  // kPrivate: of no segment, if no links reach it
  shm::Location location{};     // as ranks of its node copy it
  std::byte* mapped = nullptr;  // where this process has it; null: only operations reach it
  std::shared_ptr<std::byte> mapping;

  // Returns true if only streams reach it. Such private memory only its own process reaches, which
  // carries out others' wishes.
  bool is_by_stream() const { return (location.flags & shm::kLocationByStream) != 0; }
};

// ExposedAt returns all but `mapped` of an Exposed, from the owner's word of where the memory lies:
// for private memory its address, with the segment of an Exposure as the region.
bool IsPrivate(const shm::Location& where);
Exposed ExposedAt(uint32_t rank, const shm::Location& where, uint64_t size_bytes);

// Memory of the program's own, of this process, that direct links reach until it is destroyed.
class Exposure {
 public:
  Exposure() = default;
  // `elements`: outlives it.
  Exposure(void* base, uint64_t size_bytes, shm::ElementLock& elements);
  ~Exposure() { End(); }
  Exposure(Exposure&& other) noexcept : segment_(std::exchange(other.segment_, 0)) {}
  Exposure& operator=(Exposure&& other) noexcept {
    std::swap(segment_, other.segment_);
    return *this;
  }

  // The segment by which direct links reach the memory; 0: they do not reach it.
  uint32_t segment() const { return segment_; }
  void End();

 private:
  uint32_t segment_ = 0;
};

// One process of the window.
struct WindowTarget {
  uint32_t rank = 0;      // in the job
  bool is_local = false;  // of this node
  int64_t disp_unit = 1;
  Exposed memory;  // none in a dynamic window
  // The memory that the process has attached to a dynamic window, by address, as of
  // `attached_version`.
  std::shared_ptr<const std::vector<Exposed>> attached;
  uint64_t attached_version = 0;
  ControlBlock control;
  // The number of MPI_Win_post and MPI_Win_complete of which this process has told that one, and of
  // that one's calls that this process has met (synchronisation.h).
  uint64_t posts_told = 0;
  uint64_t posts_met = 0;
  uint64_t completes_told = 0;
  uint64_t completes_met = 0;
};

// Memory that a window allocates, not zeroed, which the ranks of the node can map.
class WindowMemory {
 public:
  WindowMemory() = default;
  ~WindowMemory() { Free(); }
  WindowMemory(const WindowMemory&) = delete;
  WindowMemory& operator=(const WindowMemory&) = delete;

  // Allocates from libferry's heap while that has room, else a segment of its own. MPI_ERR_NO_MEM.
  // Blocks on the daemon.
  Failure Allocate(uint64_t size_bytes, uint64_t alignment);
  void Free();
  // Leaves the memory to the process for good, because others may still use it.
  void Leave();
  std::byte* base() const { return base_; }

 private:
  std::byte* base_ = nullptr;  // aligned
  void* block_ = nullptr;      // of libferry's heap
  shm::Mapping segment_;
};

class Win : public Object {
 public:
  // `comm`: the window's own communicator, of the group of the program's.
  Win(Ref<Comm> comm, int flavor);
  ~Win() override;

  Comm& comm() const { return *comm_; }
  int rank() const { return comm_->rank(); }
  int size() const { return comm_->size(); }
  int flavor() const { return flavor_; }
  bool is_dynamic() const { return flavor_ == MPI_WIN_FLAVOR_DYNAMIC; }
  bool HasRank(int rank) const {
    return static_cast<unsigned>(rank) < static_cast<unsigned>(size());
  }
  WindowTarget& target(int rank) { return targets_[static_cast<size_t>(rank)]; }
  const WindowTarget& target(int rank) const { return targets_[static_cast<size_t>(rank)]; }
  const WindowTarget& own() const { return target(rank()); }
  ControlLayout control() const { return ControlLayout(size()); }
  Epochs& epochs() { return epochs_; }
  // Return the memory that this process has attached to a dynamic window, and the mutex held
  // while others' attached memory is looked up.
  AttachedMemory& attached() { return *attached_; }
  std::mutex& attached_mutex() { return attached_mutex_; }
  // The address from which displacements in this process's own memory count.
  std::byte* base() const { return base_; }
  // The most distant processes that may change the words of this window, which a wait for them is
  // tuned to.
  client::WordWait::From waits_from() const { return waits_from_; }
  // Returns kOk, or why one of these ranks is gone.
  ErrorCode DeathAmong(const std::vector<int>& ranks) const;

  // The window's one-sided operations; and those on the words by which its processes synchronise,
  // for whose end no synchronisation waits.
  client::OneSidedContext* context() const { return context_; }
  client::OneSidedContext* words() const { return words_; }
  // Keeps an operation with a request of its own until it is over: Quiet waits for it, too.
  void AddOperation(Ref<Operation> operation);
  bool has_operations() const { return has_operations_.load(std::memory_order_relaxed); }
  // Returns the first failure, once all operations, or those with one target, are over everywhere.
  Failure Quiet();
  Failure QuietWith(int target);
  // Returns when all processes have called it, in the function `call` of MPI. MPI_ERR_PROC_ABORTED:
  // one of them is gone.
  Failure Barrier(const char* call);

  // Ends the window's operations, meets all other processes, and frees the memory, unless they
  // cannot meet.
  Failure End();
  // Ends the thread that carries out others' wishes in private memory.
  void StopService();

  // Held while this process asks another to carry out a wish in its private memory.
  std::mutex& asking_mutex() { return asking_mutex_; }

  // ---- Attributes, names and handlers of the program ----
  // The window's own communicator has its error handler and, for that, the window's handle: so
  // whatever fails for the communicator, requests too, comes to the window's handler.
  Ref<ErrorHandler> error_handler() const { return comm_->error_handler(); }
  void SetErrorHandler(Ref<ErrorHandler> handler) { comm_->SetErrorHandler(std::move(handler)); }
  std::string name() const { return comm_->name(); }
  void SetName(std::string name) { comm_->SetName(std::move(name)); }
  std::vector<Info::Entry> hints() const;
  // Keys that Ferry does not know, and values that a key cannot have, are ignored. As
  // communicators, a window has mpi_assert_memory_alloc_kinds once it was given.
  void TakeHints(const std::vector<Info::Entry>& given);
  AttributeSet& attributes() { return attributes_; }
  // Returns false if windows do not have that attribute. *value points to a value that lives as
  // long as the window; for MPI_WIN_BASE it is the address itself.
  bool PredefinedAttribute(int keyval, void** value);
  void SetHandle(MPI_Win handle) { comm_->SetHandle(reinterpret_cast<MPI_Comm>(handle)); }

 private:
  friend class WindowMaker;

  const Ref<Comm> comm_;
  int flavor_;
  int model_ = MPI_WIN_UNIFIED;
  std::vector<WindowTarget> targets_;  // by rank
  WindowMemory control_memory_;
  WindowMemory data_memory_;
  Exposure exposure_;
  std::byte* base_ = nullptr;  // what the program knows
  MPI_Aint size_attribute_ = 0;
  int disp_unit_attribute_ = 1;
  client::WordWait::From waits_from_ = client::WordWait::From::kNode;
  client::OneSidedContext* const context_;
  client::OneSidedContext* const words_;
  Epochs epochs_;
  std::unique_ptr<AttachedMemory> attached_;
  std::mutex attached_mutex_;
  std::unique_ptr<PrivateService> service_;
  std::mutex asking_mutex_;
  std::mutex operations_mutex_;
  std::list<Ref<Operation>> operations_;
  std::atomic<bool> has_operations_{false};
  AttributeSet attributes_;
  mutable std::mutex hints_mutex_;
  std::vector<Info::Entry> hints_;
};

}  // namespace ferry::mpi
