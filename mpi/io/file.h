// The object of an MPI_File: a file that the processes of a group have open together (MPI 5.0,
// chapter 14).
//
// The ranks themselves open, read and write it, with the user's own rights; no daemon touches it.
// Each has a descriptor of its own.
//
// Calling thread: any that the thread level allows; collective calls, as the standard says, not two
// at a time for one file.
#pragma once

#include <mpi.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "mpi/base/error_handler.h"
#include "mpi/base/failure.h"
#include "mpi/base/handle_table.h"
#include "mpi/base/object.h"
#include "mpi/comm/comm.h"
#include "mpi/io/hints.h"
#include "mpi/io/posix_file.h"
#include "mpi/io/shared_position.h"
#include "mpi/io/view.h"

namespace ferry::mpi {

class TwoPhase;

// A split collective (MPI 5.0, section 14.4.5) between its begin and its end.
enum class SplitKind : uint8_t {
  kNone,
  kReadAtAll,
  kWriteAtAll,
  kReadAll,
  kWriteAll,
  kReadOrdered,
  kWriteOrdered,
};

struct Split {
  SplitKind kind = SplitKind::kNone;
  const void* buffer = nullptr;
  int64_t moved_bytes = 0;  // of data in memory, for the status
  Failure failure;          // which the end reports
};

class File : public Object {
 public:
  // `comm`: the file's own communicator, of the group of the program's.
  File(Ref<Comm> comm, int amode) : comm_(std::move(comm)), amode_(amode) {}

  Comm& comm() const { return *comm_; }
  int rank() const { return comm_->rank(); }
  int size() const { return comm_->size(); }
  int amode() const { return amode_; }
  bool is_sequential() const { return (amode_ & MPI_MODE_SEQUENTIAL) != 0; }
  bool may_read() const { return (amode_ & MPI_MODE_WRONLY) == 0; }
  bool may_write() const { return (amode_ & MPI_MODE_RDONLY) == 0; }

  // The name as the program gave it, and the one that does not depend on the process's directory.
  const std::string& name() const { return name_; }
  const std::string& absolute_name() const { return absolute_name_; }
  PosixFile& posix() { return posix_; }
  SharedPosition& shared() { return shared_; }
  // Returns true if the file has no offsets on one rank or more (PosixFile::is_stream): the name
  // may be that of a pipe here, and of a plain file there.
  bool is_stream_somewhere() const { return is_stream_somewhere_; }
  // PosixFile::FindNearness, of which the system is asked once.
  PosixFile::Nearness nearness() {
    int8_t nearness = nearness_.load(std::memory_order_relaxed);
    if (nearness == kUnknown) {
      nearness = static_cast<int8_t>(posix_.FindNearness());
      nearness_.store(nearness, std::memory_order_relaxed);
    }
    return static_cast<PosixFile::Nearness>(nearness);
  }
  bool is_local() { return nearness() == PosixFile::Nearness::kLocal; }
  // Returns true if ranks of the file may have caches of its bytes that are not the same.
  bool has_caches() { return is_on_several_nodes_ && nearness() == PosixFile::Nearness::kCached; }
  // To be called once ranks of other nodes may have written what this one is to see.
  void NoteWritesElsewhere() {
    if (has_caches()) {
      posix_.SetStale();
    }
  }

  std::shared_ptr<const View> view() const {
    const std::lock_guard lock(mutex_);
    return view_;
  }
  // Also puts the own pointer back to 0.
  void SetView(std::shared_ptr<const View> view) {
    const std::lock_guard lock(mutex_);
    view_ = std::move(view);
    position_ = 0;
  }

  // The own pointer, in etypes of the view. TakePosition moves it by `etypes`, and returns its
  // value before; MPI_ERR_ARG if it would be beyond 2^63.
  int64_t position() const {
    const std::lock_guard lock(mutex_);
    return position_;
  }
  void SetPosition(int64_t etypes) {
    const std::lock_guard lock(mutex_);
    position_ = etypes;
  }
  Result<int64_t> TakePosition(int64_t etypes);

  // A new object at each call that may give hints, so that it is new on all ranks or on none.
  std::shared_ptr<const Hints> hints() const {
    const std::lock_guard lock(mutex_);
    return hints_;
  }
  void TakeHints(const std::vector<Info::Entry>& given, bool at_open = false) {
    const std::lock_guard lock(mutex_);
    auto hints = std::make_shared<Hints>(*hints_);
    hints->Take(given, at_open);
    hints_ = std::move(hints);
  }

  bool is_atomic() const { return is_atomic_.load(std::memory_order_relaxed); }
  void SetAtomic(bool is_atomic) { is_atomic_.store(is_atomic, std::memory_order_relaxed); }
  // Held by a thread during an access in atomic mode (range_lock.h).
  std::mutex& atomic_mutex() { return atomic_mutex_; }
  // True from the first write of this process on, until a sync.
  bool is_written() const { return is_written_.load(std::memory_order_relaxed); }
  void SetWritten(bool is_written) { is_written_.store(is_written, std::memory_order_relaxed); }
  // True if this process has moved the shared pointer since the last change of the view.
  bool has_used_shared() const { return has_used_shared_.load(std::memory_order_relaxed); }
  void SetUsedShared(bool has_used) { has_used_shared_.store(has_used, std::memory_order_relaxed); }

  Split& split() { return split_; }

  // The parts that the ranks of a node share to make collective accesses together; null: nothing
  // yet.
  std::shared_ptr<TwoPhase>& two_phase() { return two_phase_; }

  // Collective calls that do not block (background.h); null: there were none.
  Ref<Object>& background() { return background_; }

  // The transfers of nonblocking calls that are under way (requests.h).
  void BeginTransfer() { transfers_.fetch_add(1, std::memory_order_relaxed); }
  void EndTransfer() { transfers_.fetch_sub(1, std::memory_order_release); }
  bool has_transfers() const { return transfers_.load(std::memory_order_acquire) != 0; }

  // The own communicator has the file's error handler and, for that, the file's handle: so what
  // fails for the communicator, requests too, comes to the file's handler.
  Ref<ErrorHandler> error_handler() const { return comm_->error_handler(); }
  void SetErrorHandler(Ref<ErrorHandler> handler) { comm_->SetErrorHandler(std::move(handler)); }
  MPI_File handle() const { return reinterpret_cast<MPI_File>(comm_->handle()); }
  void SetHandle(MPI_File handle) { comm_->SetHandle(reinterpret_cast<MPI_Comm>(handle)); }

 private:
  friend class FileOpener;

  const Ref<Comm> comm_;
  const int amode_;
  std::string name_;
  std::string absolute_name_;
  PosixFile posix_;
  bool is_stream_somewhere_ = false;
  bool is_on_several_nodes_ = false;
  static constexpr int8_t kUnknown = -1;
  std::atomic<int8_t> nearness_{kUnknown};
  SharedPosition shared_;
  std::atomic<bool> is_atomic_{false};
  std::mutex atomic_mutex_;
  std::atomic<bool> is_written_{false};
  std::atomic<bool> has_used_shared_{false};
  std::atomic<int64_t> transfers_{0};
  Split split_;
  std::shared_ptr<TwoPhase> two_phase_;
  Ref<Object> background_;
  mutable std::mutex mutex_;  // guards what follows
  std::shared_ptr<const View> view_;
  int64_t position_ = 0;
  std::shared_ptr<const Hints> hints_ = std::make_shared<Hints>();
};

// The handles of this process.
extern HandleTable<File, MPI_File> files;

// The error handler of MPI_FILE_NULL, which new files begin with, and to which failures of calls
// without a file go. At first it is MPI_ERRORS_RETURN.
Ref<ErrorHandler> NullFileHandler();
void SetNullFileHandler(Ref<ErrorHandler> handler);

}  // namespace ferry::mpi
