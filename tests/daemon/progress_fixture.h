// Nodes, jobs and ranks inside one test process: real data planes over loopback, real segments, and
// the real engine, driven by the test in place of the client library.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "config/options.h"
#include "daemon/progress/progress_plane.h"
#include "daemon/session/session.h"
#include "engine/rank_engine.h"
#include "engine/session_view.h"
#include "gpu_backends/host/host_backend.h"
#include "shm/lease.h"
#include "tests/daemon/gate_transport.h"

namespace ferry::daemon {

inline constexpr uint64_t kHeapBytes = 8 << 20;
inline constexpr uint32_t kHeapRegion = 1;
inline constexpr uint64_t kDeviceBytes = 8 << 20;
inline constexpr uint32_t kDeviceRegion = 2;
inline constexpr char kJob[] = "job";

// Where a test buffer lies: in the rank's heap, or in this process's own memory.
shm::Location InHeap(uint64_t offset);
// In the rank's device memory, which only streams reach; needs PlaneTest::devices_.
shm::Location InDevice(uint64_t offset);
shm::Location Private(const void* address);

// A rank, as the progress plane knows it: by its session.
class PlaneRank {
 public:
  // `session` is the daemon's; the rank maps its segments once more.
  PlaneRank(std::shared_ptr<Session> session, const JobPlan& plan, shm::Mapping session_map,
            shm::Mapping inbox_map);

  // Sends as the client library does. Returns the request, or 0 if it was done at once.
  uint32_t Send(uint32_t destination, int32_t tag, const void* data, uint64_t size_bytes);
  uint32_t SendFrom(uint32_t destination, int32_t tag, const shm::Location& where,
                    uint64_t size_bytes);
  uint32_t Receive(int32_t source, int32_t tag, const shm::Location& where, uint64_t size_bytes);
  bool Cancel(uint32_t request);
  // One step of the engine, and its consequences. False if the lease was taken.
  bool Progress();
  // Whether the request is complete; does the rest that only a rank's thread may do.
  bool Test(uint32_t request);
  // Progresses until it is complete (20 s at most). Returns its error.
  ErrorCode Wait(uint32_t request);
  uint64_t MessageBytes(uint32_t request) const;

  // Raw access, for wrong commands.
  void PushToDaemon(const shm::Descriptor& descriptor);
  void RingDaemon();
  uint32_t NewRequest();
  shm::RequestLayout& Slot(uint32_t request) { return *view_.request(request); }

  uint32_t rank() const { return session_->rank; }
  Session& session() { return *session_; }
  engine::RankEngine& engine() { return *engine_; }
  engine::SessionView& view() { return view_; }
  shm::Wake wake() { return shm::Wake(view_.inbox.wake()); }
  std::byte* heap() { return heap_.base(); }
  // The address for a kernel, not for the daemon.
  std::byte* device() { return device_; }
  uint64_t Statistic(shm::Statistic id) const {
    return shm::Statistics(view_.layout->counters).Read(id);
  }
  std::shared_ptr<const Region> MakeHeap();  // for the daemon
  // `gpu` is the rank's own; the plane imports the memory if it can.
  std::shared_ptr<Region> MakeDevice(gpu::GpuBackend& gpu);
  void BuildEngine(const std::vector<PlaneRank*>& local_ranks,
                   const engine::EngineOptions& options = {});

 private:
  void Lock();
  void Unlock(const engine::Effects& effects);
  void FinishLanded(shm::RequestLayout& slot);
  std::byte* At(const shm::Location& where);

  std::shared_ptr<Session> session_;
  const JobPlan plan_;
  shm::Mapping session_map_;
  shm::Mapping inbox_map_;
  shm::Mapping heap_;
  std::byte* device_ = nullptr;
  engine::SessionView view_;
  engine::PeerTable peers_;
  std::unique_ptr<engine::RankEngine> engine_;
  shm::Lease lease_;
  std::vector<PlaneRank*> local_ranks_;
};

// What the planes reported through their hooks.
struct Told {
  std::mutex mutex;
  std::vector<std::string> violations;
  std::vector<std::string> failed_jobs;
  std::vector<ErrorCode> failures;  // of the failed jobs
  std::vector<uint64_t> lost_links;
  std::vector<std::string> refusals;   // of regions
  std::map<uint32_t, Status> imports;  // by worker processes: the last one of each rank

  std::vector<std::string> TakeRefusals() {
    std::lock_guard lock(mutex);
    return std::exchange(refusals, {});
  }
};

// Small, fast options, and those that the environment sets (FERRY_WORKER_MODE and the like).
config::Options FastOptions();
// Whether worker processes look after the ranks of this test.
bool InWorkerProcess();
// Gives up this thread's capabilities (and its children's), except those of the mask.
void DropCapabilities(uint64_t kept);

class PlaneTest : public testing::Test {
 protected:
  // Node i serves `ranks_per_node[i]` ranks; ranks are numbered node by node.
  void Start(const std::vector<uint32_t>& ranks_per_node,
             const config::Options& options = FastOptions());
  void TearDown() override { Stop(); }
  // Undoes Start.
  void Stop();

  JobPlan PlanFor(uint32_t node) const;
  // Parts of Start, for tests that do them in another order.
  void StartPlanes(const std::vector<uint32_t>& ranks_per_node, const config::Options& options);
  std::shared_ptr<Session> MakeSession(uint32_t rank) const;
  void Attach(uint32_t rank);
  // As DataPlane::ImportRegion; returns the worker process's answer if there is one.
  Status Import(uint32_t rank, const std::shared_ptr<Region>& region);
  void BuildEngines();
  // Connects `node` to `other` in that life of the link.
  Status Connect(uint32_t node, uint32_t other, uint64_t life);
  // Between nodes 0 and 1, as the control plane does: cuts the link, and connects both in its next
  // life once their ranks have noticed. Their ranks stay cut off until NodeReturned.
  void Cut();
  void Reconnect(uint64_t life);
  void RemoveRank(uint32_t rank);
  uint64_t Incarnation(uint32_t node) const { return 100 + node; }

  // Progresses all ranks until the request of `waiter` is complete; returns its error.
  ErrorCode WaitTogether(uint32_t waiter, uint32_t request);
  Gate& gate(uint32_t node) { return *gates_[node]; }
  ProgressPlane& plane(uint32_t node) { return *planes_[node]; }
  PlaneRank& rank(uint32_t rank) { return *ranks_[rank]; }
  uint32_t NodeOf(uint32_t rank) const { return node_of_rank_[rank]; }

  std::function<void(Session&)> amend_session_;  // called before a session is added
  std::function<void(uint32_t node, config::Options&)> amend_options_;  // called for each node
  engine::EngineOptions engine_options_;                                // for the ranks
  // If set, planes and ranks have such devices, and each rank has a region of device memory.
  std::optional<gpu::HostBackendOptions> devices_;
  bool planes_have_gpus_ = true;  // if false, only the ranks have them
  bool keep_capabilities_ = false;
  Told told_;
  std::unique_ptr<gpu::GpuBackend> rank_gpu_;          // outlives the ranks
  std::vector<std::shared_ptr<gpu::GpuSource>> gpus_;  // by node; null without GPUs
  std::vector<std::shared_ptr<Gate>> gates_;           // by node
  std::vector<std::unique_ptr<ProgressPlane>> planes_;
  std::vector<std::unique_ptr<PlaneRank>> ranks_;
  std::vector<uint32_t> node_of_rank_;
  std::vector<uint32_t> local_index_;
  std::vector<uint32_t> local_size_;  // by node
};

// Polls, yielding, until `condition` holds (20 s at most; then false).
bool Eventually(const std::function<bool()>& condition);

// Host memory that a rank may add to its heap.
std::shared_ptr<Region> MakeRegion(uint32_t id, uint64_t bytes);

// A recognisable sequence of bytes.
std::vector<std::byte> Pattern(uint64_t size_bytes, uint32_t seed);

}  // namespace ferry::daemon
