// A put, get or accumulate that has a request of its own (MPI_Rput and so on). It ends with that
// request, or with the epoch, whichever comes first.
//
// Calling thread: any.
#pragma once

#include <atomic>
#include <functional>
#include <mutex>

#include "client/api/one_sided.h"
#include "mpi/base/failure.h"
#include "mpi/base/object.h"
#include "mpi/p2p/request.h"
#include "mpi/rma/window.h"

namespace ferry::mpi {

class Operation final : public Request {
 public:
  Operation(Win& win, int target);
  ~Operation() override;

  client::OneSidedContext* context() const { return context_; }
  int target() const { return target_; }
  // Sets the work to be done once the data that were got are here.
  void SetRest(std::function<Failure()> rest) { rest_ = std::move(rest); }

  // Waits until the operation is over, and returns its failure. Blocks.
  Failure Finish();
  bool is_over() const { return is_over_.load(std::memory_order_acquire); }

  bool IsDone() override;
  Failure End(MPI_Status* status) override;
  int32_t awaited_peer() const override;
  // The window's communicator, whose error handler hears of failures.
  Comm* comm() const override { return &win_->comm(); }

 private:
  const Ref<Win> win_;
  const int target_;
  client::OneSidedContext* const context_;
  std::function<Failure()> rest_;
  std::atomic<bool> is_over_{false};
  std::mutex mutex_;
  Failure failure_;
};

}  // namespace ferry::mpi
