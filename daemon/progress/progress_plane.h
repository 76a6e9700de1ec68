// The data plane of ferryd: a progress thread for the NIC, copy workers, and the progress worker.
// Implements DataPlane (data_plane.h says what each call means, and from which threads).
//
// Order of set-up. A packet that arrives before AddJob and AddNode (for the node it comes from)
// cannot be told from a forged one and is dropped. So the control plane lets no rank of a job send
// before every node of it has done both. A rank may attach later than others send to it: messages
// wait for its session.
#pragma once

#include <time.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "common/status.h"
#include "common/topology/cpu_set.h"
#include "common/unique_fd.h"
#include "config/options.h"
#include "daemon/device_rings/ring_report.h"
#include "daemon/placement/placement.h"
#include "daemon/placement/spare_cores.h"
#include "daemon/plane/data_plane.h"
#include "daemon/plane/mailbox.h"
#include "daemon/plane/worker_client.h"
#include "daemon/progress/pairs_and_rings.h"
#include "gpu_backends/api/gpu_source.h"
#include "internode/core/progress_core.h"
#include "shm/wait_policy.h"
#include "transports/api/transport.h"

namespace ferry::daemon {

// How the progress thread spends its time. The counts never fall.
struct TurnStatistics {
  uint64_t turns = 0;
  uint64_t sleeps = 0;
};

// The progress thread: turns the core, and sleeps when there is nothing to do.
//
// Calling thread: any but the progress thread itself, for Call, Until and Watch; the first two
// block until the progress thread has carried out their functions. Begin and Unwatch: any.
class ProgressThread {
 public:
  // Both outlive this. Starts the thread, on these CPUs (empty: on any).
  ProgressThread(progress::ProgressCore& core, Mailbox& mailbox, const shm::WaitPolicy& policy,
                 const topology::CpuSet& cpus = {});
  // Stops the thread. No call of Until may be waiting.
  ~ProgressThread();
  ProgressThread(const ProgressThread&) = delete;
  ProgressThread& operator=(const ProgressThread&) = delete;

  // Carries out `call` on the thread.
  void Call(const std::function<void()>& call);
  // Carries out `step` after each turn until it returns true.
  void Until(const std::function<bool()>& step);
  // As Until, without waiting: once `step` has returned true, the thread calls `done`. When the
  // thread ends, it drops steps that are not done.
  void Begin(std::function<bool()> step, std::function<void()> done);
  // From now on a write to this eventfd ends a sleep of the thread. It is never read: a rank holds
  // it too.
  void Watch(int doorbell);
  void Unwatch(int doorbell);

  pthread_t handle() { return thread_.native_handle(); }
  TurnStatistics statistics() const {
    return {turns_.load(std::memory_order_relaxed), sleeps_.load(std::memory_order_relaxed)};
  }
  // How long turns have taken, to the next turn or to the sleep that followed; with what other
  // threads did meanwhile on the same core.
  TurnTimes times() const { return turn_clock_.Read(); }

 private:
  struct Pending {
    std::function<bool()> step;
    std::function<void()> done;
  };

  void Loop();
  uint32_t RunPending();
  void Sleep();
  void EndTurn(uint64_t now_ns);
  timespec LongestSleep(uint64_t now_ns) const;

  progress::ProgressCore& core_;
  Mailbox& mailbox_;
  const shm::WaitPolicy policy_;
  UniqueFd epoll_;
  std::vector<Pending> pending_;  // the thread's
  uint64_t turn_begin_ns_ = 0;    // likewise; 0: no turn is under way
  TurnClock turn_clock_;
  std::atomic<bool> stop_{false};
  std::atomic<uint64_t> turns_{0};
  std::atomic<uint64_t> sleeps_{0};
  std::thread thread_;
};

class ProgressPlane final : public DataPlane, public RingInspector {
 public:
  static StatusOr<std::unique_ptr<ProgressPlane>> Create(
      const config::Options& options, std::unique_ptr<transport::Transport> transport,
      PlaneHooks hooks = {}, std::shared_ptr<const Placement> placement = nullptr,
      std::shared_ptr<gpu::GpuSource> gpus = nullptr);
  ~ProgressPlane() override;

  std::vector<std::byte> FabricAddressFor(uint64_t guest) const override;
  std::vector<NicStatistics> Nics() const override;
  RegistrationStatistics Registered() const override { return core_->control().Registered(); }
  TurnTimes TurnDurations() const override { return thread_->times(); }
  Status StartTrace() override;
  StatusOr<TraceDump> StopTrace() override;
  void TraceJob(const std::string& job_id,
                std::shared_ptr<shm::DaemonTraceWriter> events) override {
    thread_->Call([&] { core_->control().TraceJob(job_id, std::move(events)); });
  }
  std::vector<FaultReport> Faults(bool release) override;
  std::vector<NodeTraffic> Traffic(const std::string& job_id) const override;
  RankReport Inspect(const std::string& job_id, uint32_t rank) const override;
  std::vector<RingReport> InspectRings(const std::string& job_id, uint32_t rank) const override;
  PlaceReport PlaceOf(const Session& session) const override;
  Status AddJob(const JobPlan& plan) override;
  void RemoveJob(const std::string& job_id) override;
  Status AddSession(std::shared_ptr<Session> session) override;
  void RemoveSession(const std::string& job_id, uint32_t rank, Departure departure) override;
  void ReleaseSession(const std::string& job_id, uint32_t rank) override;
  // RemoveSession and ReleaseSession, for a caller that may wait.
  void RemoveSession(const std::string& job_id, uint32_t rank);
  Status ImportRegion(const Session& session, const std::shared_ptr<Region>& region) override;
  bool ReleaseGpus() override;
  Status AddRegion(const std::string& job_id, uint32_t rank,
                   std::shared_ptr<const Region> region) override;
  using DataPlane::RemoveRegion;
  void RemoveRegion(const std::string& job_id, uint32_t rank, uint32_t region,
                    std::function<void()> done) override;
  Status AddPair(const PairPlan& plan) override;
  void EndPair(const PairName& name, uint64_t rounds, ErrorCode error) override;
  void RemovePair(const PairName& name) override;
  Status AddNode(const std::string& job_id, uint32_t node, const NodeRoute& route) override;
  void NodeReturned(const std::string& job_id, uint32_t node) override;
  void RankEnded(const std::string& job_id, uint32_t rank, ErrorCode error) override;
  void PartRanks(const std::string& job_id, uint32_t rank, uint32_t peer) override;
  bool AreParted(const std::string& job_id, uint32_t rank, uint32_t peer) override;
  bool AreRejoined(const std::string& job_id, uint32_t rank, uint32_t peer) override;
  void RanksEnded(const std::string& job_id, std::span<const RankEnd> ends) override;
  void NodeFailed(uint64_t link, ErrorCode error) override;
  void PoisonJob(const std::string& job_id, ErrorCode error) override;
  void Probe(std::function<void()> answer) override;
  void ReachWindows(const std::string& job_id, uint32_t rank, std::vector<NicWindow> windows,
                    std::function<void(const Status&)> done) override;
  int CounterPages(uint32_t nic) const override { return pairs_and_rings_.PageDescriptor(nic); }
  bool Idle() const override;

  TurnStatistics Turns() const { return thread_->statistics(); }

 private:
  // The parts that the threads use, in the order in which they are made.
  struct Parts {
    std::shared_ptr<gpu::GpuSource> gpus;    // null: ranks alone reach device memory by streams
    std::unique_ptr<daemon::Faults> faults;  // null without
    std::unique_ptr<Mailbox> mailbox;
    std::unique_ptr<WorkerClient> worker;
    std::unique_ptr<progress::ProgressCore> core;
    PairsAndRings* pairs_and_rings = nullptr;  // the core's
  };
  ProgressPlane(const config::Options& options, std::shared_ptr<const Placement> placement,
                Parts parts);

  const uint64_t operation_timeout_ns_;
  const uint64_t trace_events_;
  const bool stages_devices_;
  size_t NicFor(const Session& session, const topology::CpuSet& cpus) const;

  const std::shared_ptr<const Placement> placement_;  // null: nothing is placed
  // The thread stops first, then the core goes, which uses the others.
  const std::shared_ptr<gpu::GpuSource> gpus_;
  const std::unique_ptr<daemon::Faults> faults_;
  const std::unique_ptr<Mailbox> mailbox_;
  const std::unique_ptr<WorkerClient> worker_;
  const std::unique_ptr<progress::ProgressCore> core_;
  PairsAndRings& pairs_and_rings_;  // the core's
  // By job and rank. The progress thread's.
  std::map<std::pair<std::string, uint32_t>, int> doorbells_;
  const std::unique_ptr<ProgressThread> thread_;
  std::optional<SpareCores> spare_cores_;  // where threads may be moved
};

// Takes the transport over. `options` gives timeouts, waiting, staging and copy workers;
// `placement`, where the progress thread and staging memory go (null: anywhere); `gpus` are for
// copies from and to device memory of ranks of our own user that only streams reach (null: they do
// it). Errors: kInvalidArgument (the transport's messages are too short), kOutOfMemory and those of
// registering the staging memory.
StatusOr<std::unique_ptr<DataPlane>> CreateProgressPlane(
    const config::Options& options, std::unique_ptr<transport::Transport> transport,
    PlaneHooks hooks = {}, std::shared_ptr<const Placement> placement = nullptr,
    std::shared_ptr<gpu::GpuSource> gpus = nullptr);

}  // namespace ferry::daemon
