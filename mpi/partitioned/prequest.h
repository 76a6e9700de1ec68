// Prequests: what kernels use in place of a partitioned request (MPIX_Prequest_create,
// ferry/device/partitioned.h, which has their layout).
//
// A Prequest lies in memory of its device, cut out of a slab, and its *state* in host memory that
// the device reaches: there kernels note errors and how far ferryd's copies are, and the host tells
// waits that they end. What is constant is copied once; each MPI_Start stores the round's number.
//
// Who moves a unit that kernels have completed is settled once (`way`): the kernel itself, where it
// reaches the receiver's memory; ferryd, whom it asks by a ring that all Prequests of the device
// share; or the hosts, as for what they ready. But what ferryd would put is left to a thread that
// waits for the round (SetAttended), unless the program wants it otherwise: that thread has nothing
// else to do, and takes a direct link where there is one.
//
// Units of which kernels have readied some partitions only are looked after by the host (Flush): it
// claims those that do not change, and puts what the counters say into the words that all hosts
// know. Kernel and host settle without atomic operations between them who does that:
//   - the host stores its claim, then looks at the counter; the kernel adds to the counter, then
//     looks for a claim. So if the host sees a counter that is not full, the kernel will see the
//     claim, and leaves the unit to the host;
//   - if the host sees a full one, either may be the case: the kernel says so if it has left it.
//
// Calling thread: as request.h says of the request; those that several threads may call say so.
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
#include "mpi/partitioned/blocks.h"
#include "mpi/partitioned/device_blocks.h"
#include "mpi/partitioned/device_ring.h"
#include "mpi/partitioned/units.h"
#include "mpi/partitioned/words.h"

namespace ferry::mpi {

// What a request that is matched tells of itself.
struct PrequestPlan {
  bool is_send = true;         // kernels ready its partitions
  bool is_collective = false;  // hosts move them, and those that arrive are of the same units
  Units units;                 // the sender's
  uint32_t partitions = 1;     // of this side
  uint64_t round = 0;          // the last one
  uint32_t peer = 0;           // a rank of the job
  bool is_local = true;
  bool is_null = false;  // there is no other side, and nothing moves

  // Of a send:
  std::byte* source = nullptr;
  bool is_packed = false;  // by the host, first
  SenderWords words;
  shm::Location destination{};
  std::byte* destination_mapped = nullptr;  // local, and in memory that can be mapped
  bool is_destination_by_stream = false;
  shm::Location receiver_block{};
  std::byte* receiver_mapped = nullptr;  // local

  // Of a receive, and of a collective with results:
  uint64_t* arrived = nullptr;  // null: data come to other memory first, or none come
};

// As the info keys say (mpix_partitioned.h).
struct PrequestWishes {
  enum class Copy : uint8_t { kAuto, kKernel, kHost, kDaemon };
  Copy copy = Copy::kAuto;
  std::optional<uint64_t> kernel_max_bytes;  // else as is best for the device
};

class Prequest {
 public:
  // MPI_ERR_UNSUPPORTED_OPERATION: it cannot be, and why; MPI_ERR_NO_MEM. Blocks on the daemon at
  // the first one of a device, or with a peer.
  static Result<std::shared_ptr<Prequest>> Make(const PrequestPlan& plan,
                                                const PrequestWishes& wishes, int device);
  ~Prequest();
  Prequest(const Prequest&) = delete;
  Prequest& operator=(const Prequest&) = delete;

  int device() const { return device_; }
  // Where kernels find it.
  MPIX_Prequest address() const {
    return static_cast<MPIX_Prequest>(static_cast<void*>(memory_.data));
  }
  // Whether its kernels need the cores that threads of the host spin on.
  bool is_on_cpus() const { return on_cpus_; }
  // Whether kernels may leave something of a send to hosts, once the receiver has begun the round.
  bool LeavesToHost() const {
    return way_ != FERRY_PARTITIONED_BY_KERNEL || !has_atomics_ || plan_.units.per_unit != 1;
  }

  // How often the program has been given it, and has not freed it. Any thread.
  void AddUse() { uses_.fetch_add(1, std::memory_order_relaxed); }
  // Whether it was the last.
  bool DropUse() { return uses_.fetch_sub(1, std::memory_order_acq_rel) == 1; }
  // It is its request's own, for the request's life.
  void Keep() { is_kept_.store(true, std::memory_order_relaxed); }
  bool is_freed() const {
    return uses_.load(std::memory_order_acquire) == 0 && !is_kept_.load(std::memory_order_relaxed);
  }

  // A round begins, and ends. Errors: the device's memory could not be written.
  Failure Begin(uint64_t round);
  void End() { is_active_.store(false, std::memory_order_release); }
  bool is_active() const { return is_active_.load(std::memory_order_acquire); }

  // ---- Of a send. Any thread, but for Flush and AreAsked, one at a time ----
  // The host has readied some by itself.
  void NoteReadiedByHost() { host_readied_.store(true, std::memory_order_relaxed); }
  // Whether it has, in this round.
  bool is_readied_by_host() const { return host_readied_.load(std::memory_order_relaxed); }
  // Whether kernels have made a mistake that TakeNoted has not told.
  bool HasNoted() const;
  Failure TakeNoted();
  // Marks what kernels have readied of units that stay incomplete, from `first` on: what two calls
  // with some time between them have found. Does not block, but for a copy from the device.
  void Flush(uint64_t round, uint32_t first);
  // A thread waits for this round from now on, and moves what kernels ready; 0: none does.
  void SetAttended(uint64_t round);
  // Once everything was taken: whether all that ferryd was asked for in this round is over. A
  // failure of it is a failure of the round.
  bool AreAsked(uint64_t round, Failure* failure);
  // At any time: what of it has failed so far.
  Failure FindRefused(uint64_t round) const;

  // ---- Of what arrives. Any thread ----
  // Waits of kernels end with this (FERRY_ERR_...), until the next round.
  void EndWaits(ErrorCode error);

 private:
  // Of a unit, what Flush knows in a round.
  struct Flushed {
    uint64_t round = 0;
    uint64_t counter = 0;  // at the last look
    uint64_t marked = 0;   // bits
    bool is_own = false;   // the kernel leaves it to the host
  };

  Prequest(const PrequestPlan& plan, int device) : plan_(plan), device_(device) {}

  // prequest_setup.cc
  Failure Allocate();
  Failure ChooseWay(const PrequestWishes& wishes);
  Failure FindKernelWay() const;
  Failure FindDaemonWay();
  Failure Fill();
  void Describe(MPIX_Prequest_object* object) const;
  uint64_t BytesToFill() const;

  Failure Store(void* to, const void* from, uint64_t size_bytes) const;
  std::vector<uint64_t> CountersAt(uint64_t round) const;
  bool LookAtCounters();
  uint64_t CounterOf(uint32_t unit) const;
  void FlushUnit(uint32_t unit, uint64_t round);
  bool IsOwn(uint32_t unit, uint64_t round, uint64_t counter, Flushed* known) const;
  void NoteAgain(uint32_t unit, uint64_t bits);
  static std::optional<ErrorCode> AnswerOf(const ferry_partitioned_unit& its);
  static bool IsAsked(const ferry_partitioned_unit& its, uint64_t round);

  ferry_partitioned_state& state() const {
    return *static_cast<ferry_partitioned_state*>(static_cast<void*>(state_.data));
  }
  ferry_partitioned_unit& unit(uint32_t index) const {
    return static_cast<ferry_partitioned_unit*>(static_cast<void*>(&state() + 1))[index];
  }
  uint64_t* counters() const { return static_cast<uint64_t*>(static_cast<void*>(address() + 1)); }

  const PrequestPlan plan_;
  const int device_;
  uint32_t way_ = FERRY_PARTITIONED_BY_HOST;
  bool has_atomics_ = false;
  bool on_cpus_ = false;
  bool leaves_to_waiting_ = false;
  DeviceBlock memory_;
  Block state_;
  std::shared_ptr<DeviceRing> ring_;
  shm::Location source_{};  // by daemon copy

  std::atomic<uint32_t> uses_{0};
  std::atomic<bool> is_kept_{false};
  std::atomic<bool> is_active_{false};
  std::atomic<bool> host_readied_{false};
  std::vector<uint64_t> looked_;  // copies of the counters, of memory that only streams reach
  std::vector<Flushed> flushed_;
  uint64_t round_ = 0;  // the last one
  uint64_t asked_round_ = 0;
  uint32_t asked_units_ = 0;  // those before are over, in that round
};

// A partitioned request of which kernels can have a Prequest.
class PrequestSource {
 public:
  // Blocks until the other side's init. MPI_ERR_REQUEST and others: there is nothing to describe.
  virtual Failure Describe(PrequestPlan* plan) = 0;
  // That of it which the program has not freed; null: none.
  virtual std::shared_ptr<Prequest> prequest() = 0;
  // While it is not active, or one that has begun the round which is under way.
  virtual void set_prequest(std::shared_ptr<Prequest> prequest) = 0;
  // In mid-round, once it has got one: as if it had had that at the start.
  virtual void LookAfterKernels() {}
  // Some of the memory of its partitions; null: there is none.
  virtual const void* memory() const { return nullptr; }

 protected:
  ~PrequestSource() = default;
};

}  // namespace ferry::mpi
