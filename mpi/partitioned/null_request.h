// A partitioned send to, or receive from, MPI_PROC_NULL: complete at each start. Partitions that
// its kernels ready go nowhere.
//
// Calling thread: see request.h and partitioned.h.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

#include "mpi/comm/comm.h"
#include "mpi/p2p/partitioned.h"
#include "mpi/p2p/request.h"
#include "mpi/partitioned/blocks.h"
#include "mpi/partitioned/prequest.h"

namespace ferry::mpi {

class NullPartitioned final : public Request, public Partitioned, public PrequestSource {
 public:
  NullPartitioned(Comm& comm, bool is_send, int partitions)
      : comm_(Ref<Comm>::Share(&comm)), is_send_(is_send), partitions_(partitions) {}

  ~NullPartitioned() override { GiveBlock(&words_); }

  bool IsDone() override { return true; }
  Failure End(MPI_Status* status) override;
  void Look(MPI_Status* status) override;
  bool is_persistent() const override { return true; }
  bool is_active() const override { return is_active_.load(std::memory_order_acquire); }
  bool is_enqueued() const override { return queued().any(); }
  Partitioned* partitioned() override { return this; }
  Failure Start() override;
  Failure Cancel() override;
  Comm* comm() const override { return comm_.get(); }

  int readied_partitions() const override { return is_send_ ? partitions_ : 0; }
  int arriving_partitions() const override { return is_send_ ? 0 : partitions_; }
  Failure Ready(int first, int last) override;
  Failure HasArrived(int partition, bool* has_arrived) override;
  Failure PrepareUnless(const std::atomic<bool>* is_cancelled) override;

  PrequestSource* prequest_source() override { return this; }
  Failure Describe(PrequestPlan* plan) override;
  std::shared_ptr<Prequest> prequest() override;
  void set_prequest(std::shared_ptr<Prequest> prequest) override {
    prequest_ = std::move(prequest);
  }

 private:
  const Ref<Comm> comm_;
  const bool is_send_;
  const int partitions_;
  std::atomic<bool> is_active_{false};
  std::shared_ptr<Prequest> prequest_;
  Block words_;         // the words that its Prequest names, as for other requests
  uint64_t round_ = 0;  // of a send, for its kernels
};

}  // namespace ferry::mpi
