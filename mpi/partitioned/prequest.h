// Prequests: the objects that kernels use in place of partitioned requests (MPIX_Prequest_create,
// ferry/device/partitioned.h, which has their layout).
//
// A Prequest lies in memory of its device, cut out of a slab, and its *state* in host memory that
// the device reaches: there kernels note errors and the progress of ferryd's copies, and the host
// ends the waits of kernels. Constant values are copied once; each MPI_Start stores the round's
// number.
//
// `way` says which of three moves a unit that kernels have completed; it is chosen once: the kernel
// itself, where it reaches the receiver's memory; ferryd, which the kernel asks by a ring that all
// Prequests of the device share; or the hosts, as for partitions that they ready themselves. But a
// unit that ferryd would put is left to a thread that waits for the round (SetAttended), unless the
// program wants it otherwise: that thread has nothing else to do, and takes a direct link where
// there is one.
//
// The host looks after units of which kernels have readied some partitions only (Flush): it claims
// those that do not change, and copies the counters' values into the words that both hosts read.
// Kernel and host agree, without atomic operations between them, on which of the two does that:
//   - the host stores its claim, then looks at the counter; the kernel adds to the counter, then
//     looks for a claim. So if the host sees a counter that is not full, the kernel will see the
//     claim, and leaves the unit to the host;
// - if the host sees a full counter, either may be the case: the kernel says so if it has left the
// unit to the host.
//
// Calling thread: as request.h says of the request; functions that several threads may call say so.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "client/api/front_end.h"
#include "ferry/device/partitioned/prequest.h"
#include "mpi/base/failure.h"
#include "mpi/partitioned/prequest_parts.h"

namespace ferry::mpi {

class Prequest {
 public:
  // Makes a Prequest on the device. Blocks on the daemon at the first one of a device, or with a
  // peer. MPI_ERR_UNSUPPORTED_OPERATION, with the reason; MPI_ERR_NO_MEM.
  static Result<std::shared_ptr<Prequest>> Make(const PrequestPlan& plan,
                                                const PrequestWishes& wishes, int device);
  ~Prequest();
  Prequest(const Prequest&) = delete;
  Prequest& operator=(const Prequest&) = delete;

  int device() const { return device_; }
  // The address by which kernels name it.
  MPIX_Prequest address() const {
    return static_cast<MPIX_Prequest>(static_cast<void*>(parts_.memory.data));
  }
  // Returns true if its kernels run on CPUs, and so need the cores on which threads of the host
  // spin.
  bool is_on_cpus() const { return parts_.on_cpus; }
  // Returns true if kernels may leave units of a send to hosts, once the receiver has begun the
  // round.
  bool LeavesToHost() const {
    return parts_.way != FERRY_PARTITIONED_BY_KERNEL || !parts_.has_atomics ||
           plan_.units.per_unit != 1;
  }

  // Counts how often the program has got this Prequest and not freed it. Any thread.
  void AddUse() { uses_.fetch_add(1, std::memory_order_relaxed); }
  // Returns true if this was the last use.
  bool DropUse() { return uses_.fetch_sub(1, std::memory_order_acq_rel) == 1; }
  // Keeps the Prequest, which belongs to its request, for the request's life.
  void Keep() { is_kept_.store(true, std::memory_order_relaxed); }
  bool is_freed() const {
    return uses_.load(std::memory_order_acquire) == 0 && !is_kept_.load(std::memory_order_relaxed);
  }

  // Called when a round begins, and when it ends. Errors: the device's memory could not be written.
  Failure Begin(uint64_t round);
  void End() { is_active_.store(false, std::memory_order_release); }
  bool is_active() const { return is_active_.load(std::memory_order_acquire); }

  // ---- Of a send --------------------------------------------------------------------------------
  // Any thread; Flush and AreAsked: one at a time.

  // Notes that the host has readied some partitions itself, in this round.
  void NoteReadiedByHost() { host_readied_.store(true, std::memory_order_relaxed); }
  // Returns true if the host has readied some partitions itself, in this round.
  bool is_readied_by_host() const { return host_readied_.load(std::memory_order_relaxed); }
  // Returns true if kernels have made a mistake that TakeNoted has not reported yet.
  bool HasNoted() const;
  Failure TakeNoted();
  // Marks partitions that kernels have readied in units that stay incomplete, from `first` on, once
  // two calls with some time between them have found them. Blocks only for a copy from the device.
  void Flush(uint64_t round, uint32_t first);
  // Tells kernels that a thread waits for this round from now on, and moves the units that they
  // ready; 0: none does.
  void SetAttended(uint64_t round);
  // Returns true if all that kernels have asked ferryd for in this round is over; *failure then
  // says whether some of it has failed, and so the round. Call it once all units were taken.
  bool AreAsked(uint64_t round, Failure* failure);
  // Returns the first failure of ferryd's operations of this round so far. Call it at any time.
  Failure FindRefused(uint64_t round) const;

  // ---- Of a receive -----------------------------------------------------------------------------
  // Any thread.

  // Ends the waits of kernels with this error (FERRY_ERR_...), until the next round.
  void EndWaits(ErrorCode error);

 private:
  // The record that Flush keeps of a unit in a round.
  struct Flushed {
    uint64_t round = 0;
    uint64_t counter = 0;  // at the last look
    uint64_t marked = 0;   // bits
    bool is_own = false;   // the kernel leaves it to the host
  };

  Prequest(const PrequestPlan& plan, int device) : plan_(plan), device_(device) {}

  bool LookAtCounters();
  uint64_t CounterOf(uint32_t unit) const;
  void FlushUnit(uint32_t unit, uint64_t round);
  bool IsOwn(uint32_t unit, uint64_t round, uint64_t counter, Flushed* known) const;
  void NoteAgain(uint32_t unit, uint64_t bits);
  static std::optional<ErrorCode> AnswerOf(const ferry_partitioned_unit& its);
  static bool IsAsked(const ferry_partitioned_unit& its, uint64_t round);

  ferry_partitioned_state& state() const {
    return *static_cast<ferry_partitioned_state*>(static_cast<void*>(parts_.state.data));
  }
  ferry_partitioned_unit& unit(uint32_t index) const {
    return static_cast<ferry_partitioned_unit*>(static_cast<void*>(&state() + 1))[index];
  }
  uint64_t* counters() const { return static_cast<uint64_t*>(static_cast<void*>(address() + 1)); }

  const PrequestPlan plan_;
  const int device_;
  PrequestParts parts_;

  std::atomic<uint32_t> uses_{0};
  std::atomic<bool> is_kept_{false};
  std::atomic<bool> is_active_{false};
  std::atomic<bool> host_readied_{false};
  std::vector<uint64_t> looked_;  // copies of the counters, of memory that only streams reach
  std::vector<Flushed> flushed_;
  uint64_t round_ = 0;  // the last one
  uint64_t asked_round_ = 0;
  uint32_t asked_units_ = 0;  // units before this one are over, in that round
};

// A partitioned request of which kernels can have a Prequest.
class PrequestSource {
 public:
  // Fills in *plan. Blocks until the other side's init. MPI_ERR_REQUEST and others: the request
  // cannot be described.
  virtual Failure Describe(PrequestPlan* plan) = 0;
  // The request's Prequest that the program has not freed; null: none.
  virtual std::shared_ptr<Prequest> prequest() = 0;
  // Sets the Prequest. Call it while the request is not active, or with a Prequest that has begun
  // the round which is under way.
  virtual void set_prequest(std::shared_ptr<Prequest> prequest) = 0;
  // Called after set_prequest in mid-round: does what the start of the round would have done with a
  // Prequest.
  virtual void LookAfterKernels() {}
  // An address in the memory of the request's partitions; null: it has none.
  virtual const void* memory() const { return nullptr; }

 protected:
  ~PrequestSource() = default;
};

}  // namespace ferry::mpi
