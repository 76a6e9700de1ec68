// Collectives that do not block, persistent or not (MPI 5.0, sections 6.12 and 6.13).
//
// They progress without the application: by a thread of Ferry's (WatchChannel), and by whoever
// tests or waits. Persistent ones that are matched (ferry/mpi/mpix.h) can be started by queues,
// too. Calling thread: see request.h.
#pragma once

#include <memory>

#include "mpi/coll/channel.h"
#include "mpi/coll/collective_operation.h"
#include "mpi/coll/stream_collective.h"
#include "mpi/comm/comm.h"
#include "mpi/p2p/request.h"

namespace ferry::mpi {

class CollectiveRequest : public Request, public Matchable {
 public:
  CollectiveRequest(Comm& comm, std::unique_ptr<CollectiveOperation> operation, bool persistent);
  ~CollectiveRequest() override;

  // Begins one that is not persistent: once, before anything else.
  Failure Begin();

  bool IsDone() override;
  void AwaitUntil(bool (*done)(void*), void* argument) override;
  bool is_watched() const override { return !is_persistent_; }
  Failure End(MPI_Status* status) override;
  bool is_persistent() const override { return is_persistent_; }
  bool is_active() const override { return is_active_; }
  Failure Start() override;
  Comm* comm() const override { return comm_.get(); }
  void DescribeWait(shm::CallDescription* description) const override;
  bool is_enqueued() const override;
  Matchable* matchable() override { return is_persistent_ ? this : nullptr; }

  Failure AddOffered(std::vector<client::RequestHandle>* requests) override;
  Failure IsMatched(bool* matched) override;
  Failure FindEnqueued(client::RequestHandle* handle) override;

 private:
  void BeginRun();
  bool HasCompared();
  Failure BeginMatched();
  Failure EndMatched() const;

  const Ref<Comm> comm_;
  Channel& channel_;
  std::unique_ptr<CollectiveOperation> operation_;
  const bool is_persistent_;
  bool is_active_ = false;
  uint32_t number_ = 0;       // of a persistent one
  uint64_t call_number_ = 0;  // of others
  std::unique_ptr<Channel::Started> started_;
  std::shared_ptr<Comparison> comparison_;  // of the last start, where ranks compare their calls
  std::unique_ptr<StreamCollective> on_stream_;  // once it was offered to be matched
  collective::Schedule schedule_;                // of that
  ProgramRun by_rank_;                           // of that: a start of the rank's own
  Failure refusal_;                              // why it cannot be matched
};

}  // namespace ferry::mpi
