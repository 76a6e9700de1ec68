// One rank's connection to Ferry: everything behind ferry.h and front_end.h.
//
// Its parts: the message engine (Progress), the requests and their memory (Requests), how messages
// are sent (Sender) and received (Receiver), persistent requests that are matched for life
// (Matching), operations in other ranks' memory (OneSidedOperations). The Client joins the job and
// makes them (bootstrap.cc), lets threads wait for what the parts have started (messages.cc), and
// says what errors mean (failure.cc). There is one Client per process.
//
// Calling thread: any that the thread level allows. Functions that block say so.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "client/api/front_end.h"
#include "client/api/message_watch.h"
#include "client/bootstrap/attach_connection.h"
#include "client/bootstrap/daemon_life.h"
#include "client/bootstrap/meeting_watch.h"
#include "client/bootstrap/watcher.h"
#include "client/links/link_keeper.h"
#include "client/p2p/absence.h"
#include "client/p2p/core_sharing.h"
#include "client/p2p/receiver.h"
#include "client/p2p/sender.h"
#include "client/profile/measure.h"
#include "client/rma/one_sided_operations.h"
#include "client/triggered/matching.h"
#include "gpu_backends/api/registry.h"

namespace ferry::client {

class Client final : public FrontEnd,
                     public Messaging,
                     public StreamQueues,
                     public MemoryAccess,
                     public NodePeers {
 public:
  // Joins the job that `options` names; blocks until all ranks have. `threads`: several threads may
  // call at the same time.
  static StatusOr<std::unique_ptr<Client>> Join(const config::Options& options, bool threads,
                                                std::unique_ptr<gpu::BackendRegistry> backends);
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  // Meets the other ranks, then leaves in good order. Blocks. kInvalidRequest while requests are
  // open.
  Status Leave();
  // Allows threads for good: RestrictThreads does nothing from now on.
  void KeepThreads() {
    AllowThreads();
    threads_asked_for_ = true;
  }
  // Fails the whole job: tells the daemon; the caller then ends the process.
  void Abort(int exit_code);

  Memory& memory() { return *memory_; }
  Offloads& offloads() { return *offloads_; }
  Queues& queues() { return matching_->queues(); }
  Matching& matching() { return *matching_; }
  uint64_t Counter(uint32_t index) const { return view_.layout->counters[index]; }
  const engine::SessionView& view() const { return view_; }
  QueueLengths LengthsOfQueues() const {
    const shm::MatchTableLayout& table = *view_.match();
    return {shm::LoadRelaxed(table.posted_count), shm::LoadRelaxed(table.unexpected_count)};
  }

  // Each is documented in its interface (client/api/).
  void SetThreads(bool allowed) override { allowed ? AllowThreads() : RestrictThreads(); }
  ErrorCode StartSend(const Message& message, RequestHandle* handle) override;
  ErrorCode StartReceive(const Message& message, RequestHandle* handle) override;
  bool SendNow(const Message& message) override {
    const bool sent = sender_->SendNow(message);
    if (sent && UsesLinks()) [[unlikely]] {
      ArmLinks(message);  // the socket may not have taken it
    }
    return sent;
  }
  bool ReceiveNow(const Message& message, Completion* completion) override {
    return receiver_->ReceiveNow(message, completion);
  }
  ErrorCode Send(const Message& message, Completion* completion) override {
    return SendNow(message) ? ErrorCode::kOk : SendByRequest(message, completion);
  }
  ErrorCode ReceiveUntil(const Message& message, uint64_t end_ns, Completion* completion,
                         RequestHandle* handle) override;
  ErrorCode MakePersistent(const Message& message, bool is_send, RequestHandle* handle) override;
  ErrorCode Start(RequestHandle handle) override;
  ErrorCode FreePersistent(RequestHandle handle) override;
  bool Cancel(RequestHandle handle) override;
  ErrorCode Probe(const Message& pattern, bool block, Completion* found) override;
  ErrorCode ProbeMatched(const Message& pattern, bool block, MatchedReceive* receive) override;
  Status BeginMatch(std::span<const RequestHandle> requests, RequestHandle* match) override;
  Status IsMatched(RequestHandle request, bool* matched) override {
    return matching_->IsMatched(request, matched);
  }
  bool IsEnqueued(RequestHandle request) override { return matching_->IsEnqueued(request); }
  StatusOr<QueueHandle> MakeQueue(uint32_t type, const void* stream_address) override {
    return queues().Make(static_cast<QueueType>(type), stream_address);
  }
  Status FreeQueue(QueueHandle queue) override { return queues().Free(queue); }
  Status AwaitQueue(QueueHandle queue) override {
    calls_->NoteWait();  // the stream's own wait does not
    return queues().Await(queue);
  }
  Status EnqueueStart(QueueHandle queue, std::span<const RequestHandle> requests) override {
    return matching_->EnqueueStart(queue, requests);
  }
  Status EnqueueWait(QueueHandle queue, std::span<const RequestHandle> requests) override {
    return matching_->EnqueueWait(queue, requests);
  }
  Status EnqueueCall(QueueHandle queue, HostCall call) override;
  StatusOr<RequestHandle> MakeProgram(std::string name, std::span<const RequestHandle> requests,
                                      std::vector<ProgramStep> steps) override {
    return matching_->MakeProgram(std::move(name), requests, std::move(steps));
  }
  Status FreeProgram(RequestHandle program) override { return queues().FreeProgram(program); }
  Status StartProgram(RequestHandle program) override { return queues().StartByRank(program); }
  bool AdvanceProgram(RequestHandle program, ErrorCode* error) override;
  bool Test(RequestHandle handle, Completion* completion) override;
  void Wait(RequestHandle handle, Completion* completion) override;
  bool IsComplete(RequestHandle handle) override;
  bool Poll() override;
  void WaitFor(bool (*done)(void*), void* argument, int32_t peer, uint64_t end_ns) override;
  void WakeThreads() override { progress_->wake().Publish(); }
  StatusOr<void*> AllocateMemory(uint64_t size_bytes, MemoryKind kind, int device) override;
  Status FreeMemory(void* pointer) override;
  Status ShareMemory(int fd, void* base, uint64_t size_bytes) override {
    return memory_->Share(fd, base, size_bytes);
  }
  Status UnshareMemory(void* base) override;
  void* TakeBounceBuffer(uint64_t size_bytes) override;
  bool GiveBounceBuffer(void* bounce_buffer) override;
  Status Copy(void* destination, const void* source, uint64_t size_bytes) override {
    return memory_->Copy(destination, source, size_bytes);
  }
  Status CopyStrided(const gpu::StridedCopy& copy) override { return memory_->CopyStrided(copy); }
  Status Reduce(const gpu::Reduction& reduction) override { return memory_->Reduce(reduction); }
  bool CanReduce(int device, gpu::ReductionType type, gpu::ReductionOp op) override {
    return memory_->CanReduce(device, type, op);
  }
  int DeviceOf(const void* pointer) const override { return memory_->DeviceByStream(pointer); }
  uint32_t Expose(void* base, uint64_t size_bytes, shm::ElementLock* lock) override;
  void Unexpose(uint32_t segment) override;
  ErrorCode CopyFromPeer(uint32_t rank, const shm::Location& from, void* to,
                         uint64_t size_bytes) override;
  ErrorCode CopyToPeer(uint32_t rank, const shm::Location& to, const void* from,
                       uint64_t size_bytes) override;
  ErrorCode CopyEach(uint32_t rank, CopyDirection direction,
                     std::span<const ProcessCopy> copies) override {
    return FailureWords::Tell(peer_memory_->CopyPrivate(rank, copies,
                                                        direction == CopyDirection::kFromPeer
                                                            ? PeerMemory::Direction::kFromPeer
                                                            : PeerMemory::Direction::kToPeer));
  }
  bool IsPrivateMemoryReachable(uint32_t rank) const override {
    return peer_memory_->IsPrivateMemoryReachable(rank);
  }
  StatusOr<std::shared_ptr<std::byte>> MapPeer(uint32_t rank, const shm::Location& where,
                                               uint64_t size_bytes, bool* is_by_stream) override;
  Status LetKernelsReach(int device, const void* pointer) override;
  Status LetDevicesReach(const std::byte* base) override;
  int DeviceCount() const override;
  StatusOr<gpu::DeviceInfo> DescribeDevice(int device) const override;
  StatusOr<DeviceRing> MakeRing(int device, uint32_t slots, uint32_t completions) override;
  Status FreeRing(uint64_t handle) override { return matching_->rings().Destroy(handle); }
  ErrorCode PeerState(uint32_t rank) const override { return progress_->PeerState(rank); }
  void WakePeer(uint32_t rank) override { progress_->WakeRank(rank); }
  OneSided& one_sided() { return *one_sided_; }
  void Rest(uint64_t longest_ns) override;
  Status Explain(ErrorCode error) const override;

  // Waits until all of the handles are complete, or the rank is poisoned. Blocks.
  void AwaitAll(std::span<const RequestHandle> handles);
  // Waits until one of the handles (null ones are skipped) is complete and returns its index, or -1
  // when all are null. Blocks.
  int WaitAny(std::span<const RequestHandle> handles, Completion* completion);
  // Returns true if the handle names a request of this rank (a completed send included).
  bool IsValid(RequestHandle handle) const {
    return handle == kCompletedSend || pool_->Resolve(handle) != 0;
  }
  // kInvalidBuffer while a request that is not complete uses the memory.
  Status CheckUnused(const void* memory, uint64_t size_bytes);

  // Blocks until all ranks have called it (dissemination).
  ErrorCode Barrier() { return BarrierUnder(nullptr); }

  // The rank's poison, explained in the watcher's words.
  Status Health() const;

  // After news of a rank's end: lets go of the memory that the rank has shared, which is free only
  // then. For a thread that is in no other call.
  void HearOfDeaths() {
    // Pairs with the daemon's bump, behind the rank's state.
    const uint32_t deaths = shm::LoadAcquire(*death_epoch_);
    if (deaths != shm::LoadRelaxed(deaths_heard_)) [[unlikely]] {
      shm::StoreRelaxed(deaths_heard_, deaths);
      one_sided_->DropEnded();
    }
  }

 private:
  Client();
  void AllowThreads();
  void RestrictThreads();
  bool TestNow(RequestHandle handle, Completion* completion);

  // bootstrap.cc
  Status Attach();
  Status MakeSegments(const attach::AttachReply& reply);
  Status MeetPeers(const attach::AttachReply& reply);
  void NoteCores(const ZeroedArray<PeerProcess>& processes);
  void MakeParts(ZeroedArray<PeerProcess> processes);
  void MakeLinks(const attach::LinkRules& rules);
  void WatchDaemon();
  void BeginMeasuring(uint32_t node, uint32_t local_size);
  Status MapInbox(uint32_t rank);  // a rank of this node; any thread
  void AwaitUnder(MeetingWatch* watch, RequestHandle receive, int32_t from);

  // messages.cc
  ErrorCode BarrierUnder(MeetingWatch* watch);
  uint32_t ResolvePersistent(RequestHandle handle) const;
  bool Advance(uint32_t request);
  bool PollOnce();
  ErrorCode SendByRequest(const Message& message, Completion* completion);
  ErrorCode ReceiveByRequest(const Message& message, uint64_t end_ns, Completion* completion,
                             RequestHandle* handle);
  template <typename Done>
  void WaitUntil(Done&& done, const shm::WaitPolicy& policy, uint64_t end_ns = UINT64_MAX);
  template <typename Done, typename Late>
  void WaitUntil(Done&& done, const shm::WaitPolicy& policy, uint64_t end_ns, Late&& late);
  template <typename Done, typename Late>
  void WaitInside(Done&& done, const shm::WaitPolicy& policy, uint64_t end_ns, Late&& late);
  void AwaitArrivals(uint64_t timeout_ns);
  void EnterLibrary();
  void LeaveLibrary();
  bool UsesLinks() {
    return links_.has_value() && (progress_->paths().UsesLinks() || links_->NeedsTurns());
  }
  static void EndAbsence(Absence* absence);
  void ArmLinks(const Message& started) { ArmLinks(started, &absence_); }
  void ArmLinks(const Message& started, Absence* absence);
  void ReturnLinks();
  void ForgetByLinks(const void* base);

  AttachConnection attach_;
  std::unique_ptr<gpu::BackendRegistry> backends_;
  shm::Mapping session_map_;
  std::mutex inboxes_mutex_;                 // while one is mapped
  std::vector<shm::Mapping> inbox_maps_;     // by local index; those of peers at first use
  std::map<uint32_t, Status> ended_before_;  // ranks that had left or died before
  UniqueFd doorbell_;
  UniqueFd daemon_pidfd_;
  uint32_t daemon_pid_ = 0;
  uint32_t peer_timeout_ms_ = 0;  // as the daemon has it
  engine::SessionView view_;
  engine::PeerTable peers_;
  uint32_t own_lane_ = 0;
  bool threads_asked_for_ = false;  // by ferry_init, or by a front end

  // Made once the rank has joined.
  std::optional<CoreSharing> core_sharing_;  // where the ranks have cores enough
  std::optional<Progress> progress_;
  mutable std::optional<Memory> memory_;  // questions about a buffer make it known
  std::optional<LinkKeeper> links_;       // where the daemon allows direct links
  std::optional<PeerMemory> peer_memory_;
  std::optional<RequestPool> pool_;
  std::optional<Offloads> offloads_;
  std::optional<Requests> requests_;
  std::optional<Sender> sender_;
  std::optional<Receiver> receiver_;
  std::optional<Matching> matching_;
  std::optional<OneSidedOperations> one_sided_;
  std::optional<Calls> calls_;
  std::unique_ptr<Measure> measure_;  // of a measured rank
  uint32_t barriers_ = 0;
  Absence absence_;          // with a transfer that the link thread carries on
  Absence absence_of_puts_;  // the same after operations in memory of others
  uint32_t has_long_ = 0;  // some request is, or was, of a transfer that the link thread carries on
  uint32_t deaths_heard_ = 0;
  uint32_t has_looked_ = 0;  // 1: a thread has run the engine since the watcher looked last
  std::optional<DaemonLife> life_;
  std::optional<Watcher> watcher_;
};

}  // namespace ferry::client
