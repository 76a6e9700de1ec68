// Requests of partitioned collectives (ferry/mpi/ferry_mpi/mpix_partitioned.h): each unit of
// partitions is a persistent collective of its own, on its part of the data, which this rank starts
// when it has readied all partitions of the unit. This follows Temucin and others (ExaMPI 2024),
// where each user partition goes through the collective's schedule alone.
//
// If all ranks share a node, they carry units out in their own memory (node_units.h); otherwise
// units go by messages and schedules.
//
// A thread that waits, tests or asks for a partition makes the units progress, and so does the
// thread that carries on nonblocking collectives (mpi/coll/helper.h). Kernels mark partitions, and
// look for arrivals, in words that they share with the host (prequest.h): their units begin when
// one of those threads reads the words. Calling thread: see request.h and request/partitioned.h.
// MPI_Pready takes no lock until it completes a unit.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "coll/messenger.h"
#include "coll/runner.h"
#include "coll/schedule.h"
#include "mpi/coll/channel.h"
#include "mpi/coll/collective_operation.h"
#include "mpi/coll/helper.h"
#include "mpi/comm/comm.h"
#include "mpi/p2p/partitioned.h"
#include "mpi/p2p/request.h"
#include "mpi/partitioned/blocks.h"
#include "mpi/partitioned/node_units.h"
#include "mpi/partitioned/prequest.h"
#include "mpi/partitioned/units.h"
#include "mpi/partitioned/words.h"

namespace ferry::mpi {

// One unit of a collective, with its arguments checked.
struct UnitOfCollective {
  std::unique_ptr<CollectiveOperation> operation;
  // The schedule, if the program describes one; null: all ranks choose one for the problem.
  std::shared_ptr<const collective::Schedule> schedule;
  std::unique_ptr<collective::Reducer> reducer;  // for the program's schedule, if it reduces
  // All ranks have blocks of one size, and exchange them with all others.
  bool is_even = true;
};

class PartitionedCollective final : public Request,
                                    public Partitioned,
                                    public PrequestSource,
                                    public Watched {
 public:
  // How many of a channel's unit numbers a collective takes: for its units, the barrier, and the
  // setup.
  static uint32_t NumbersFor(const Units& units) { return units.count() + 1 + NodeUnits::kNumbers; }
  // `readies`: this rank contributes partitions. MPI_ERR_OTHER: the communicator's numbers are used
  // up. MPI_ERR_NO_MEM.
  static Result<Ref<PartitionedCollective>> Make(Comm& comm, const Units& units, bool readies,
                                                 std::vector<UnitOfCollective> parts);
  // Called by Make. `first_number`: the first of the channel's numbers that Make has taken. `block`
  // has WordBytes(units) bytes.
  PartitionedCollective(Comm& comm, const Units& units, bool readies,
                        std::vector<UnitOfCollective> parts, uint32_t first_number,
                        const Block& block);
  ~PartitionedCollective() override;

  bool IsDone() override;
  void AwaitUntil(bool (*done)(void*), void* argument) override;
  // Kernels, and ranks of the node, change words without waking WaitFor.
  bool is_watched() const override {
    return has_prequest_.load(std::memory_order_relaxed) ||
           has_node_.load(std::memory_order_relaxed);
  }
  Failure End(MPI_Status* status) override;
  bool is_persistent() const override { return true; }
  bool is_active() const override { return is_active_.load(std::memory_order_relaxed); }
  bool is_enqueued() const override { return queued().any(); }
  Failure Start() override;
  Comm* comm() const override { return comm_.get(); }
  void Unpublish(MPI_Request handle) override;
  Partitioned* partitioned() override { return this; }

  int readied_partitions() const override {
    return readies_ ? static_cast<int>(units_.partitions) : 0;
  }
  int arriving_partitions() const override {
    return arrives_ ? static_cast<int>(units_.partitions) : 0;
  }
  Failure Ready(int first, int last) override;
  Failure HasArrived(int partition, bool* has_arrived) override;
  // Either all ranks call it in a round, or none does.
  Failure PrepareUnless(const std::atomic<bool>* is_cancelled) override;

  PrequestSource* prequest_source() override { return this; }
  Failure Describe(PrequestPlan* plan) override;
  std::shared_ptr<Prequest> prequest() override;
  void set_prequest(std::shared_ptr<Prequest> prequest) override;
  void LookAfterKernels() override;
  const void* memory() const override;

  // The library's thread looks for partitions that kernels have marked, and carries on the setup.
  bool IsBusy() override;
  bool IsLookedAfter() override { return false; }
  bool IsAnnounced() const override { return false; }
  Progress AdvanceAll() override;
  void Abandon() override {}

 private:
  struct alignas(64) Unit {
    UnitOfCollective part;
    std::unique_ptr<collective::CollectiveRun> run;  // by messages
    bool is_whole = true;                            // this rank has its whole contribution
    collective::RunFailure outcome;                  // of a unit that NodeUnits carried out
  };
  // The part of the collective that waits for messages of other ranks: the library's thread is told
  // of those, so it need not look again and again.
  class Messages final : public Watched {
   public:
    explicit Messages(PartitionedCollective* self) : self_(*self) {}
    bool IsBusy() override { return self_.WaitsForMessages(); }
    bool IsLookedAfter() override {
      const uint32_t looks = self_.looks_.load(std::memory_order_relaxed);
      return std::exchange(seen_looks_, looks) != looks;
    }
    Progress AdvanceAll() override { return self_.AdvanceAll(); }
    void Abandon() override {}

   private:
    PartitionedCollective& self_;
    uint32_t seen_looks_ = 0;
  };
  // Moves the units of `under_way` that are done to `ended`. For Channel::Advance, which calls
  // is_done under the lock under which runs change.
  struct Looking {
    std::vector<Unit*>* under_way;
    std::vector<Unit*>* ended;
    bool is_done() const;
  };

  bool WaitsForMessages() const;
  void NoteLook() {
    looks_.store(looks_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }
  uint64_t round() const { return round_.load(std::memory_order_relaxed); }
  void MakeRuns();
  void GiveBackNumbers();
  // The size of the words that kernels reach: those of a sender's block, then those of arrivals.
  static uint64_t WordBytes(const Units& units) {
    return SenderBlockBytes(units.count()) + units.count() * sizeof(uint64_t);
  }
  bool HasEnded() const {
    // Pairs with Look.
    return ended_units_.load(std::memory_order_acquire) == units_.count();
  }
  void BeginRoundLocked();
  void AddLocked(uint32_t unit, Failure failure);
  void StartLocked(uint32_t unit);
  void SettleLocked();
  bool EndLocked();
  void HoldLocked();
  void CarryOn();
  void BeginMarkedLocked();
  bool LookLocked();
  void Note(Failure failure, ErrorCode error);
  bool IsPreparedLocked();

  const Ref<Comm> comm_;
  Channel& channel_;
  const Units units_;
  const bool readies_;
  const bool arrives_;
  const bool holds_results_;
  const uint32_t first_number_;
  Block block_;
  const SenderWords words_;     // `taken`: the unit has begun
  const ArrivalWords arrived_;  // the unit's result lies in its place
  std::vector<Unit> all_;
  std::unique_ptr<collective::CollectiveRun> barrier_;  // of Prepare
  uint32_t barrier_number_ = 0;
  std::atomic<bool> is_active_{false};
  std::atomic<uint64_t> round_{0};
  std::atomic<uint32_t> ended_units_{0};   // in this round
  std::atomic<bool> has_failed_{false};    // a unit of this round
  std::atomic<bool> has_prequest_{false};  // for other threads
  std::atomic<bool> has_node_{false};      // likewise: node_ is there
  std::atomic<bool> is_setting_up_{false};
  std::atomic<uint32_t> looks_{0};  // of the program's threads
  Messages messages_{this};
  // Changes under mutex_; while the request is active only from null.
  std::shared_ptr<Prequest> prequest_;
  std::mutex mutex_;                 // guards the members below; taken before the channel's
  bool has_set_up_ = false;          // it is known whether units go by node_
  collective::RunFailure given_up_;  // valid then: why this rank waits for no message any more
  std::unique_ptr<NodeUnits> node_;  // null: units go by messages
  uint32_t begun_units_ = 0;         // kernels' units: those before this have begun
  uint64_t next_flush_ns_ = 0;
  std::vector<Unit*> under_way_;
  std::vector<Unit*> just_ended_;
  std::vector<Unit*> held_;  // units that have succeeded; their results wait for the others
  uint64_t prepared_round_ = 0;
  bool is_barrier_left_ = false;
  bool has_numbers_ = true;
  Failure failure_;  // the first of this round
};

}  // namespace ferry::mpi
