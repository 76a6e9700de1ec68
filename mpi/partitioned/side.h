// What the two sides of a partitioned message have alike: a persistent request, its rounds and
// failures, how it waits, and what becomes of it once the program has freed it.
//
// A side that is freed before the other one is may still be written to, by the other side, and has
// to tell it that it is gone. So it stays, as an *orphan*, until the two have told each other
// (orphans.h).
//
// Calling thread: see request.h and partitioned.h.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "mpi/coll/helper.h"
#include "mpi/comm/comm.h"
#include "mpi/p2p/partitioned.h"
#include "mpi/p2p/payload.h"
#include "mpi/p2p/request.h"
#include "mpi/partitioned/offer.h"
#include "mpi/partitioned/prequest.h"

namespace ferry::mpi {

struct SideArguments {
  Comm* comm;
  void* buffer;
  uint32_t partitions;  // at least 1
  int64_t count;        // of one partition
  const Datatype* type;
  uint32_t peer;  // a rank of the job
  int tag;
};

class Side : public Request, public Partitioned, public PrequestSource, public Watched {
 public:
  void AwaitUntil(bool (*done)(void*), void* argument) override;
  // Waits for words, as no other request does.
  bool is_watched() const override { return true; }
  bool is_persistent() const override { return true; }
  bool is_active() const override { return is_active_.load(std::memory_order_acquire); }
  bool is_enqueued() const override { return queued().any(); }
  Partitioned* partitioned() override { return this; }
  PrequestSource* prequest_source() override { return this; }
  std::shared_ptr<Prequest> prequest() override;
  void set_prequest(std::shared_ptr<Prequest> prequest) override;
  void LookAfterKernels() override;
  const void* memory() const override { return payload_.data(); }
  Failure Start() override;
  Failure End(MPI_Status* status) override;
  Failure Cancel() override;
  int32_t awaited_peer() const override { return static_cast<int32_t>(peer_); }
  Comm* comm() const override { return comm_.get(); }
  // The program's looks are none for the library's thread; what nobody is told of is looked at.
  bool IsLookedAfter() override { return false; }
  bool IsAnnounced() const override { return false; }
  void Abandon() override {}
  // The other side hears of it at once, whoever else has a part in this one for a while.
  void Unpublish(MPI_Request handle) override;

  // The round that is under way, or was the last one; 0: none has begun.
  uint64_t round() const { return round_.load(std::memory_order_relaxed); }
  uint32_t peer() const { return peer_; }
  bool is_local() const { return is_local_; }
  const Payload& payload() const { return payload_; }

  // For one that is freed: does what there is to do. True: nobody else counts on it any more.
  bool TryLeave();
  // Whether the library or a thread still names it, so that it stays even at the end of MPI.
  virtual bool IsNamed() { return false; }
  // Whether that has to be asked again soon, since the other side may be waiting for it.
  virtual bool IsAwaited() = 0;

 protected:
  explicit Side(const SideArguments& arguments);

  // Becomes an orphan.
  void Destroy() override;
  // TryLeave, until it is true for the first time; under mutex_.
  virtual bool TryLeaveLocked() = 0;

  // Begins the next round: round_, then is_active_.
  virtual void BeginRound() = 0;
  // Why no round can begin.
  virtual Failure CheckPartner() = 0;
  // Local: whether either side reaches the other's private memory. Both know the same.
  bool ReachEachOther() const;
  // Tells the other side, if it is known and local, whether this one sleeps: then it is to be
  // woken.
  virtual void TellOfRest(bool rests) = 0;
  // It has got a Prequest, or has none any more.
  virtual void TellOfPrequest() {}
  // A thread begins to wait for it, or ceases to.
  virtual void TellOfWait(bool /*waits*/) {}
  // Whether it waits for kernels that run on the CPUs of this node.
  virtual bool WaitsForCpuKernels() const { return HasCpuKernels(); }
  bool HasCpuKernels() const {
    return has_prequest_.load(std::memory_order_relaxed) && prequest_ != nullptr &&
           prequest_->is_on_cpus();
  }
  // Whether something may have come since the last look, for all that two loads can tell.
  virtual bool HasNews() { return true; }

  // The first failure counts; the request is of no use any more. `error`: for waits of kernels.
  void SetFailure(Failure failure, ErrorCode error = ErrorCode::kInvalidRequest);
  // Waits until done(argument), which the other side's init brings about. Its death is a failure.
  Failure AwaitPartner(bool (*done)(void*), void* argument);
  bool has_failed() const { return has_failed_.load(std::memory_order_acquire); }
  // Ok: it has not failed.
  Failure failure() const;
  // The same after a wait, which the rank's poison ends, too.
  Failure RoundFailure();
  // For one that misses something: notes the failure if the other side is not there any more.
  // `has_ended`: it has freed its request. What came before that is looked at once more, so only
  // the second call notes it.
  void LookForEnd(bool has_ended);

  static Failure EndedFailure();

  // After the round is over, by whatever thread: a thread of this rank may rest until then.
  void TellOwnThread();

  int64_t total_bytes() const { return payload_.size_bytes(); }
  std::string SizeText() const;

  // The message by which the two are matched.
  client::Message OfferMessage(Offer* offer) const;

  Ref<Comm> comm_;
  const uint32_t peer_;
  const int tag_;
  const bool is_local_;  // a rank of the same node
  const bool is_own_;    // this rank
  const uint32_t partitions_;
  const Payload payload_;  // of all partitions
  const bool is_by_stream_;
  std::mutex mutex_;  // guards what the two kinds say
  // Changes under mutex_; while the request is active only from null, before has_prequest_.
  std::shared_ptr<Prequest> prequest_;
  std::atomic<bool> has_prequest_{false};  // for the library's thread
  std::atomic<uint64_t> round_{0};
  std::atomic<bool> is_active_{false};
  std::atomic<bool> rests_{false};  // a thread in AwaitUntil

 private:
  void WaitUntil(bool (*done)(void*), void* argument);

  std::atomic<bool> has_failed_{false};
  bool has_seen_end_ = false;
  bool has_left_ = false;  // under mutex_
  mutable std::mutex failure_mutex_;
  Failure failure_;
};

}  // namespace ferry::mpi
