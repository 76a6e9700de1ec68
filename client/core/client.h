// One rank's connection to Ferry: everything behind ferry.h.
//
// Parts: how it joins and leaves (bootstrap.cc), how it makes progress and waits (progress.cc), how
// sends and receives start (point_to_point.cc, staged_send.cc, held_receives.cc) and end
// (completion.cc), how persistent requests are matched for life, and started by streams
// (matched.cc), calls that only front ends need (front_end.cc), what errors mean (failure.cc).
// There is one Client per process.
//
// Calling thread: any that the thread level allows. Functions that block say so.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "client/core/attach_connection.h"
#include "client/core/control_library.h"
#include "client/core/failure_words.h"
#include "client/core/front_end.h"
#include "client/core/memory.h"
#include "client/core/offloads.h"
#include "client/core/peer_memory.h"
#include "client/core/request_pool.h"
#include "client/core/watcher.h"
#include "client/triggered/channels.h"
#include "client/triggered/device_rings.h"
#include "client/triggered/queues.h"
#include "config/options.h"
#include "engine/rank_engine.h"
#include "gpu_backends/api/registry.h"
#include "shm/lease.h"
#include "shm/wait_policy.h"
#include "shm/wake.h"

namespace ferry::client {

class Client final : public FrontEnd {
 public:
  // Joins the job that `options` names; blocks until all ranks have. `threads`: several threads may
  // call at the same time.
  static StatusOr<std::unique_ptr<Client>> Join(const config::Options& options, bool threads,
                                                std::unique_ptr<gpu::BackendRegistry> backends);
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  // Meets the other ranks, then leaves in good order. Blocks. kInvalidRequest while requests are
  // open.
  Status Leave();
  // Fails the whole job: tells the daemon; the caller then ends the process.
  void Abort(int exit_code);

  uint32_t rank() const override { return view_.rank; }
  uint32_t size() const override { return view_.job_size; }
  int NodeOf(uint32_t rank) const override { return static_cast<int>(nodes_[rank]); }
  const config::Options& options() const override { return options_; }
  Memory& memory() { return *memory_; }
  RequestPool& requests() { return *requests_; }
  Offloads& offloads() { return *offloads_; }
  uint64_t Counter(uint32_t index) const { return view_.layout->counters[index]; }

  // FrontEnd: documented in front_end.h.
  void AllowThreads() override;
  void RestrictThreads() override;
  bool AreThreadsAllowed() const override { return threads_; }
  Status Prepare(Message* message, Use use) override;
  ErrorCode StartSend(const Message& message, RequestHandle* handle) override;
  ErrorCode StartReceive(const Message& message, RequestHandle* handle) override;
  bool SendNow(const Message& message) override;
  bool ReceiveNow(const Message& message, Completion* completion) override;
  ErrorCode Send(const Message& message, Completion* completion) override;
  ErrorCode Receive(const Message& message, Completion* completion) override {
    return ReceiveUntil(message, UINT64_MAX, completion, nullptr);
  }
  ErrorCode ReceiveUntil(const Message& message, uint64_t end_ns, Completion* completion,
                         RequestHandle* handle) override;
  ErrorCode MakePersistentSend(const Message& message, RequestHandle* handle) override;
  ErrorCode MakePersistentReceive(const Message& message, RequestHandle* handle) override;
  ErrorCode Start(RequestHandle handle) override;
  Status CheckStart(RequestHandle handle) const override;
  ErrorCode FreePersistent(RequestHandle handle) override;
  bool Cancel(RequestHandle handle) override;
  ErrorCode Probe(const Message& pattern, bool block, Completion* found) override;
  ErrorCode ProbeMatched(const Message& pattern, bool block, MatchedReceive* receive) override;
  Status BeginMatch(std::span<const RequestHandle> requests, RequestHandle* match) override;
  Status IsMatched(RequestHandle request, bool* matched) override;
  bool IsEnqueued(RequestHandle request) const override;
  StatusOr<QueueHandle> MakeQueue(uint32_t type, const void* stream_address) override;
  Status FreeQueue(QueueHandle queue) override { return queues_->Free(queue); }
  Status AwaitQueue(QueueHandle queue) override { return queues_->Await(queue); }
  Status EnqueueStart(QueueHandle queue, std::span<const RequestHandle> requests) override;
  Status EnqueueWait(QueueHandle queue, std::span<const RequestHandle> requests) override;
  StatusOr<RequestHandle> MakeProgram(std::string name, std::span<const RequestHandle> requests,
                                      std::vector<ProgramStep> steps) override;
  Status FreeProgram(RequestHandle program) override { return queues_->FreeProgram(program); }
  Status StartProgram(RequestHandle program) override { return queues_->StartByRank(program); }
  bool AdvanceProgram(RequestHandle program, ErrorCode* error) override;
  Queues& queues() { return *queues_; }
  DeviceRings& rings() { return *rings_; }
  // Prepares one start of the request by a device; returns where its end lies. kInvalidRequest,
  // kInvalidBuffer, kUnsupported: as for ferry_ring_prepare_start.
  StatusOr<shm::Location> PrepareStart(RequestHandle handle);
  bool Test(RequestHandle handle, Completion* completion) override;
  void Wait(RequestHandle handle, Completion* completion) override;
  bool TestNow(RequestHandle handle, Completion* completion) override;
  bool IsComplete(RequestHandle handle) override;
  bool Poll() override;
  void WaitFor(bool (*done)(void*), void* argument, int32_t peer, uint64_t end_ns) override;
  void WakeThreads() override { wake_.Publish(); }
  StatusOr<void*> AllocateMemory(uint64_t size_bytes, MemoryKind kind, int device) override;
  Status FreeMemory(void* pointer) override;
  void* TakeStaging(uint64_t size_bytes) override;
  bool GiveStaging(void* block) override;
  Status Copy(void* destination, const void* source, uint64_t size_bytes) override;
  Status CopyStrided(const gpu::StridedCopy& copy) override { return memory_->CopyStrided(copy); }
  Status Reduce(const gpu::Reduction& reduction) override { return memory_->Reduce(reduction); }
  bool CanReduce(int device, gpu::ReductionType type, gpu::ReductionOp op) override;
  bool IsByStream(const void* pointer) const override { return memory_->IsByStream(pointer); }
  int DeviceOf(const void* pointer) const override { return memory_->DeviceByStream(pointer); }
  shm::Location Locate(const void* pointer, uint64_t size_bytes) const override;
  ErrorCode CopyFromPeer(uint32_t rank, const shm::Location& from, void* to,
                         uint64_t size_bytes) override;
  ErrorCode CopyToPeer(uint32_t rank, const shm::Location& to, const void* from,
                       uint64_t size_bytes) override;
  bool IsPrivateMemoryReachable(uint32_t rank) const override;
  StatusOr<std::shared_ptr<std::byte>> MapPeer(uint32_t rank, const shm::Location& where,
                                               uint64_t size_bytes) override;
  ErrorCode PeerState(uint32_t rank) const override;
  void WakePeer(uint32_t rank) override;
  bool IsCrowded() const override { return cores_are_scarce_; }
  ErrorCode poison() const override { return wake_.poison(); }
  Status Explain(ErrorCode error) const override;

  // Waits until all of the handles are complete, or the rank is poisoned. Blocks.
  void AwaitAll(std::span<const RequestHandle> handles);
  // Waits until one of the handles (null ones are skipped) is complete and returns its index, or -1
  // when all are null. Blocks.
  int WaitAny(std::span<const RequestHandle> handles, Completion* completion);
  // Whether the handle names a request of this rank (a completed send included).
  bool IsValid(RequestHandle handle) const {
    return handle == kCompletedSend || requests_->Resolve(handle) != 0;
  }

  // Posts the held receives, so that later steps see everything the application has started.
  void PostHeld() {
    if (!held_.empty()) [[unlikely]] {
      PostAllHeld();
    }
  }

  // Blocks until all ranks have called it (dissemination).
  ErrorCode Barrier();

  // The rank's poison, explained in the watcher's words.
  Status Health() const;

 private:
  Client() = default;

  // bootstrap.cc
  Status Attach(const config::Options& options);
  Status MakeSegments(const config::Options& options, const attach::AttachReply& reply);
  Status MeetPeers(const config::Options& options, const attach::AttachReply& reply);
  Status MapInbox(uint32_t rank);  // a rank of this node; any thread

  // progress.cc
  uint32_t Holder() const { return threads_ ? ThreadId() : holder_; }
  static uint32_t ThreadId();
  bool EnterLease() {
    return lease_.TryAcquire(Holder()) || lease_.Acquire(Holder(), &wake_.layout()->poison);
  }
  bool PollOnce();
  void Perform(engine::Effects& effects, engine::LaneSet* later = nullptr);
  void AskToAttend(const engine::LaneSet& ranks);
  void CallWorker(const engine::LaneSet& ranks, bool to_daemon);
  ErrorCode TakeProbed(uint32_t request, const Message& pattern, const Completion& envelope);
  bool HelpBackground();
  void NoteOffered(uint32_t request);
  bool HelpOffered();
  void Forget(uint32_t request);
  bool IsTransferring(uint32_t request) const;
  void NoteTransfers(const engine::Effects& effects);
  void LeaveLibrary();
  shm::WaitPolicy PolicyFor(int32_t peer) const;
  template <typename Done>
  void WaitUntil(Done&& done, const shm::WaitPolicy& policy, engine::LaneSet* later = nullptr,
                 uint64_t end_ns = UINT64_MAX);
  template <typename Action>
  ErrorCode UnderLease(Action&& action, engine::LaneSet* later = nullptr);

  // point_to_point.cc
  bool SendLocal(const Message& message);
  bool SendEager(const Message& message);
  bool SendEagerByStream(const Message& message);
  bool TakeEager(const Message& message, uint32_t lane, bool waits, Completion* completion,
                 uint64_t* message_bytes);
  bool ReceiveEager(const Message& message, Completion* completion);
  bool ReceiveAtOnce(uint32_t request, const Message& message, uint32_t lane);
  bool WantsBounce(const Message& message, shm::RequestKind kind) const;
  bool NeedsBounce(const shm::Location& buffer, const Message& message,
                   shm::RequestKind kind) const;
  uint64_t DirectMax(const Message& message, shm::RequestKind kind) const;
  bool MayBeRemote(int32_t peer) const;
  bool WantsShadow(const shm::Location& buffer, const Message& message,
                   shm::RequestKind kind) const;
  void* StandIn(uint64_t size_bytes, bool is_private, bool must);
  ErrorCode FillSlot(uint32_t request, const Message& message, shm::RequestKind kind);
  ErrorCode StartSlot(uint32_t request, engine::LaneSet* later = nullptr);
  void OpenLaneFor(uint32_t request);
  void HandOver(const engine::Effects& matched);
  bool TryReceiveNow(uint32_t request);
  ErrorCode MakePersistent(const Message& message, shm::RequestKind kind, RequestHandle* handle);
  ErrorCode TakeSlot(uint32_t* request);
  ErrorCode Take(const Message& message, shm::RequestKind kind, uint32_t* request);

  // staged_send.cc; all but the first four under staging_mutex_
  void LimitStaging(uint64_t heap_bytes);
  bool IsOfStagedSize(const Message& message) const;
  bool SendStaged(const Message& message);
  void AwaitStaged(uint64_t timeout_ns);
  void* TakeStagingBlock(uint64_t size_bytes);
  void GiveStagingBlock(void* block, uint64_t size_bytes);
  bool EndStaged(uint32_t request);

  // held_receives.cc
  bool MayHold(uint32_t request) const;
  void Hold(uint32_t request);
  static bool IsHeld(const shm::RequestLayout& slot);
  void TakeHeld();
  void PostAllHeld();
  void PostOne(uint32_t request);
  template <typename Done>
  bool AwaitHeld(Done&& done, const shm::WaitPolicy& policy);

  // matched.cc
  void MakeChannels();
  Status CheckMatchable(RequestHandle handle, uint32_t* request) const;
  StatusOr<std::vector<Queues::Item>> ResolveAll(std::span<const RequestHandle> handles) const;
  ErrorCode StartPaired(uint32_t request);
  void BeginPaired(uint32_t request, const Channel& channel);
  bool AdvanceMatched(uint32_t request);
  bool AdvanceMatch(uint32_t request);

  // completion.cc
  bool Advance(uint32_t request);
  bool AdvanceHeld(uint32_t request);
  bool CopyTransfer(uint32_t request);
  void CopyLanded(shm::RequestLayout& slot);
  void FinishTransfer(uint32_t request, uint32_t generation, ErrorCode error);
  ErrorCode EndBounce(shm::RequestLayout& slot, bool deliver);
  void GiveUp(uint32_t request);
  void Collect(uint32_t request, Completion* completion);

  AttachConnection attach_;
  ControlLibrary control_;
  std::unique_ptr<gpu::BackendRegistry> backends_;
  shm::Mapping session_map_;
  std::mutex inboxes_mutex_;              // while one is mapped
  std::vector<shm::Mapping> inbox_maps_;  // by local index; those of peers at first use
  std::map<uint32_t, Status> gone_;       // ranks that had ended before
  UniqueFd doorbell_;
  UniqueFd daemon_pidfd_;

  engine::SessionView view_;
  engine::PeerTable peers_;
  std::vector<uint32_t> nodes_;  // by rank
  config::Options options_;
  uint32_t own_lane_ = 0;
  bool threads_ = false;
  bool threads_asked_for_ = false;  // by ferry_init
  uint32_t holder_ = 0;             // of the lease, when only one thread calls at a time
  bool private_reachable_ = false;  // others may reach this rank's private memory
  uint64_t eager_max_bytes_ = 0;
  uint64_t one_block_bytes_ = 0;   // ferryd does not cut device messages up to this size
  uint64_t worker_min_bytes_ = 0;  // larger ones go to the worker while the rank computes
  shm::WaitPolicy wait_policy_;
  uint32_t first_looks_ = 32;      // a blocking receive's first looks at its lane (ReceiveEager)
  bool cores_are_scarce_ = false;  // ranks of the node share cores
  FailureWords failure_words_;
  std::deque<uint32_t> held_;        // receives, in order; only while one thread calls at a time
  bool is_held_up_by_held_ = false;  // the last Advance without progress was for one of them

  std::unique_ptr<engine::RankEngine> engine_;
  shm::Lease lease_;
  shm::Wake wake_;
  shm::Wake daemon_wake_;
  shm::Statistics statistics_;
  std::unique_ptr<Memory> memory_;
  std::unique_ptr<PeerMemory> peer_memory_;
  std::unique_ptr<RequestPool> requests_;
  std::unique_ptr<Offloads> offloads_;
  std::unique_ptr<Channels> channels_;
  std::unique_ptr<Queues> queues_;
  std::unique_ptr<DeviceRings> rings_;
  std::mutex matches_mutex_;
  std::map<uint32_t, std::vector<uint32_t>> matches_;  // match requests, and what each matches
  std::mutex background_mutex_;
  std::vector<uint32_t> background_;  // receives made transfers by another request's call
  std::vector<uint32_t> offered_;     // sends of device memory that receivers may not reach
  std::mutex staging_mutex_;
  std::deque<uint32_t> staged_;  // sends with heap blocks still to arrive; complete for senders
  uint32_t staged_limit_ = 0;
  uint64_t staging_bytes_left_ = 0;
  uint32_t barriers_ = 0;
  std::unique_ptr<Watcher> watcher_;
};

}  // namespace ferry::client
