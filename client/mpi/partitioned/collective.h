// Requests of partitioned collectives (ferry/mpi/ferry_mpi/mpix_partitioned.h): each unit of
// partitions is a persistent collective of its own, on its part of the data, which this rank starts
// when it has readied all partitions of the unit. After Temucin and others (ExaMPI 2024): each user
// partition goes through the collective's schedule alone.
//
// Units progress by whoever waits, tests or asks for a partition, and by the thread that carries
// nonblocking collectives on (client/mpi/channel/helper.h). Calling thread: see request.h and
// request/partitioned.h. MPI_Pready takes no lock until it completes a unit.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "client/collective/messenger.h"
#include "client/collective/runner.h"
#include "client/collective/schedule.h"
#include "client/mpi/channel/channel.h"
#include "client/mpi/channel/collective_operation.h"
#include "client/mpi/comm/comm.h"
#include "client/mpi/partitioned/collective_units.h"
#include "client/mpi/request/partitioned.h"
#include "client/mpi/request/request.h"

namespace ferry::mpi {

// One unit, understood.
struct UnitOfCollective {
  std::unique_ptr<CollectiveOperation> operation;
  // Of a schedule that the program describes; null: the one that all ranks choose for the problem.
  std::shared_ptr<const collective::Schedule> schedule;
  std::unique_ptr<collective::Reducer> reducer;  // of such a schedule, if it reduces
};

class PartitionedCollective final : public Request, public Partitioned {
 public:
  // `readies`: this rank contributes partitions. MPI_ERR_OTHER: the communicator's numbers are used
  // up.
  static Result<Ref<PartitionedCollective>> Make(Comm& comm, const Units& units, bool readies,
                                                 std::vector<UnitOfCollective> parts);
  // `first_number`: the first of those that Make has taken of the channel.
  PartitionedCollective(Comm& comm, const Units& units, bool readies,
                        std::vector<UnitOfCollective> parts, uint32_t first_number);
  ~PartitionedCollective() override;

  bool IsDone() override;
  void AwaitUntil(bool (*done)(void*), void* argument) override;
  Failure End(MPI_Status* status) override;
  bool is_persistent() const override { return true; }
  bool is_active() const override { return is_active_.load(std::memory_order_relaxed); }
  bool is_enqueued() const override { return queued().any(); }
  Failure Start() override;
  Comm* comm() const override { return comm_.get(); }
  Partitioned* partitioned() override { return this; }

  int readied_partitions() const override {
    return readies_ ? static_cast<int>(units_.partitions) : 0;
  }
  int arriving_partitions() const override {
    return arrives_ ? static_cast<int>(units_.partitions) : 0;
  }
  Failure Ready(int first, int last) override;
  Failure HasArrived(int partition, bool* has_arrived) override;
  // All ranks call it in the same round, or none.
  Failure Prepare() override;

 private:
  struct alignas(64) Unit {
    UnitOfCollective part;
    std::unique_ptr<collective::CollectiveRun> run;
    uint32_t number = 0;
    std::atomic<uint64_t> rounds{0};  // that are over: what it gives lies at its place
  };
  // Those of `under_way` that are done go over to `ended`: for Channel::Advance, which asks under
  // the lock that runs change under.
  struct Looking {
    std::vector<Unit*>* under_way;
    std::vector<Unit*>* ended;
    bool is_done() const;
  };

  uint64_t round() const { return round_.load(std::memory_order_relaxed); }
  bool HasEndedIn(const Unit& unit) const {
    // Pairs with Look: the data are at their place.
    return unit.rounds.load(std::memory_order_acquire) == round();
  }
  void MakeRuns(std::vector<UnitOfCollective> parts);
  static uint32_t NumbersFor(const Units& units) { return units.count() + 1; }  // and the barrier
  void Begin(Unit* unit);
  void CarryOn();
  bool Look();
  void Note(Failure failure);

  const Ref<Comm> comm_;
  Channel& channel_;
  const Units units_;
  const bool readies_;
  const bool arrives_;
  const uint32_t first_number_;
  Readiness readiness_;
  std::vector<Unit> all_;
  std::unique_ptr<collective::CollectiveRun> barrier_;  // of Prepare
  uint32_t barrier_number_ = 0;
  std::atomic<bool> is_active_{false};
  std::atomic<uint64_t> round_{0};
  std::atomic<uint32_t> ended_units_{0};  // in this round
  std::mutex mutex_;                      // guards what follows; the channel's comes after it
  std::vector<Unit*> under_way_;
  std::vector<Unit*> just_ended_;
  uint64_t prepared_round_ = 0;
  Failure failure_;  // the first of this round
};

}  // namespace ferry::mpi
