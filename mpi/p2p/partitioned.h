// The part of a request that partitioned communication needs (MPI 5.0, chapter 4;
// ferry/mpi/ferry_mpi/mpix_partitioned.h): the calls of a program about single partitions.
//
// Calling thread: any, several at a time, also for one request, while it is active.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <vector>

#include "mpi/base/failure.h"

namespace ferry::mpi {

// Gives kernels access to a request; see mpi/partitioned/prequest.h.
class PrequestSource;

// For Request::AwaitUntil: waits until done(argument) is true, or the wait was cancelled.
struct CancellableWait {
  bool (*done)(void*);
  void* argument;
  const std::atomic<bool>* is_cancelled;  // null: the wait cannot be cancelled

  static bool IsOver(void* self) {
    const auto& wait = *static_cast<CancellableWait*>(self);
    return wait.done(wait.argument) || (wait.is_cancelled != nullptr && *wait.is_cancelled);
  }
};

class Partitioned {
 public:
  // The arrived partitions that MPIX_Parrived_any and _some have named in this round.
  class Named {
   public:
    // Each Start makes it empty.
    void Forget() {
      if (!is_used_.load(std::memory_order_relaxed)) [[likely]] {
        return;
      }
      std::lock_guard lock(mutex_);
      named_.clear();
      first_unnamed_ = 0;
    }

   private:
    friend class ArrivalSearch;  // mpi/api/partitioned.cc

    std::atomic<bool> is_used_{false};
    std::mutex mutex_;
    std::vector<bool> named_;  // empty: none
    int first_unnamed_ = 0;    // all before it have been named
  };

  // The calls of queues (ferry/mpi/mpix.h) that use the request. Request::is_enqueued returns
  // any(): while there are such calls, and from an enqueued start until the enqueued wait, only
  // MPI_Pready, MPI_Parrived and their like may use it beside them.
  class QueuedCalls {
   public:
    bool any() const { return calls_ != 0 || is_started_; }
    bool is_started() const { return is_started_; }
    void SetStarted(bool is_started) { is_started_ = is_started; }
    void Begin() { ++calls_; }
    void End() { --calls_; }

   private:
    std::atomic<uint32_t> calls_{0};
    std::atomic<bool> is_started_{false};
  };

  // How many partitions the program readies here, and how many arrive. 0: this side has no such
  // partitions; a send has no arrivals.
  virtual int readied_partitions() const = 0;
  virtual int arriving_partitions() const = 0;
  // Marks partitions [first, last], which exist, as ready. Does not wait for other ranks or
  // threads. MPI_ERR_REQUEST: the request is not active, or one of the partitions was readied
  // before in this round; the others are marked all the same.
  virtual Failure Ready(int first, int last) = 0;
  // The quick form of Ready for one partition, whose number may be wrong. False: nothing happened;
  // check the number, and call Ready, which reports the error.
  virtual bool TryReady(int /*partition*/) { return false; }
  // Sets *has_arrived if that partition's data are there; true also if the request is not active,
  // and once it has failed. Makes progress. Does not block.
  virtual Failure HasArrived(int partition, bool* has_arrived) = 0;
  // Returns once data of this round may be moved: from then on readied partitions leave at once.
  // Blocks. MPI_ERR_REQUEST: the request is not active; or the failure of the round.
  Failure Prepare() { return PrepareUnless(nullptr); }
  // Prepare for a queue: also returns, with success, once `is_cancelled` is true since the queue no
  // longer waits for it.
  virtual Failure PrepareUnless(const std::atomic<bool>* is_cancelled) = 0;
  // Null: kernels cannot use requests of this kind.
  virtual PrequestSource* prequest_source() { return nullptr; }
  Named& named() { return named_; }
  QueuedCalls& queued() { return queued_; }
  const QueuedCalls& queued() const { return queued_; }

 protected:
  ~Partitioned() = default;

 private:
  Named named_;
  QueuedCalls queued_;
};

}  // namespace ferry::mpi
