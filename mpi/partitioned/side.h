// Side: the common part of the two sides of a partitioned message: a persistent request, its rounds
// and failures, its waits, and its end once the program has freed it.
//
// The other side may still write to a side that is freed first, and has to be told of its end. So
// the freed side stays, as an *orphan*, until the two have told each other (orphans.h).
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
  // True: unlike other requests it waits for words in shared memory.
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
  void DescribeWait(shm::CallDescription* description) const override;
  // True while a thread waits for this side: it carries the round on, except in the rests that it
  // takes.
  bool IsLookedAfter() override {
    return attending_.load(std::memory_order_relaxed) != 0 &&
           !rests_.load(std::memory_order_relaxed);
  }
  // False: no event announces changes of the words, so that the library's thread has to look.
  bool IsAnnounced() const override { return false; }
  void Abandon() override {}
  // Tells the other side of the end at once, even if other references keep this side for a while.
  void Unpublish(MPI_Request handle) override;

  // The round that is under way, or was the last one; 0: none has begun.
  uint64_t round() const { return round_.load(std::memory_order_relaxed); }
  uint32_t peer() const { return peer_; }
  bool is_local() const { return is_local_; }
  const Payload& payload() const { return payload_; }

  // Carries on the end of a side that is freed. True: the other side does not use it any more.
  bool TryLeave();
  // Returns true if the library or a thread still uses it, so that it stays even at the end of MPI.
  virtual bool IsNamed() { return false; }
  // Returns true if TryLeave has to be called again soon, since the other side may be waiting for
  // it.
  virtual bool IsAwaited() = 0;

 protected:
  explicit Side(const SideArguments& arguments);

  // Makes the side an orphan.
  void Destroy() override;
  // TryLeave calls it, under mutex_, until it returns true for the first time.
  virtual bool TryLeaveLocked() = 0;

  // Begins the next round: round_, then is_active_.
  virtual void BeginRound() = 0;
  // Fails if no round can begin, with the reason.
  virtual Failure CheckPartner() = 0;
  // For a local peer: returns true if each side can copy to and from the other's private memory.
  // Both sides get one answer.
  bool ReachEachOther() const;
  // Tells the other side, if it is known and local, whether this one sleeps, so that it has to be
  // woken.
  virtual void TellOfRest(bool rests) = 0;
  // Called when the side has got a Prequest, or has none any more.
  virtual void TellOfPrequest() {}
  // Called when a thread begins to wait for the side, and when it ends its wait.
  virtual void TellOfWait(bool /*waits*/) {}
  // Returns true if the side waits for kernels that run on the CPUs of this node.
  virtual bool WaitsForCpuKernels() const { return HasCpuKernels(); }
  bool HasCpuKernels() const {
    return has_prequest_.load(std::memory_order_relaxed) && prequest_ != nullptr &&
           prequest_->is_on_cpus();
  }
  // Returns false if nothing has come since the last look; costs two loads.
  virtual bool HasNews() { return true; }

  // Notes the first failure: the request cannot be used any more. `error` ends the waits of
  // kernels.
  void SetFailure(Failure failure, ErrorCode error = ErrorCode::kInvalidRequest);
  // Waits until done(argument) is true, which the other side's init causes. Fails if that rank
  // dies.
  Failure AwaitPartner(bool (*done)(void*), void* argument);
  bool has_failed() const { return has_failed_.load(std::memory_order_acquire); }
  // Ok: the request has not failed.
  Failure failure() const;
  // The failure after a wait: also that of the rank's poison, which ends waits, too.
  Failure RoundFailure();
  // Called by a side that still misses data: notes a failure if the other side has gone.
  // `has_ended`: it has freed its request. Only the second such call notes the failure, so that the
  // caller looks once more for data that came before the end.
  void LookForEnd(bool has_ended);

  static Failure EndedFailure();

  // Called by the thread that has found the round over: wakes a thread of this rank that may rest
  // until then.
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
  std::mutex mutex_;  // guards the members that the two derived classes name
  // Changes under mutex_; while the request is active only from null, before has_prequest_.
  std::shared_ptr<Prequest> prequest_;
  std::atomic<bool> has_prequest_{false};  // for the library's thread
  std::atomic<uint64_t> round_{0};
  std::atomic<bool> is_active_{false};
  std::atomic<bool> rests_{false};  // a thread that waits for this side

 private:
  void WaitUntil(bool (*done)(void*), void* argument);

  std::atomic<bool> has_failed_{false};
  std::atomic<uint32_t> attending_{0};  // threads in AwaitUntil
  bool has_seen_end_ = false;
  bool has_left_ = false;  // under mutex_
  mutable std::mutex failure_mutex_;
  Failure failure_;
};

}  // namespace ferry::mpi
