// Nodes, jobs and ranks inside one test process: real data planes over loopback, and ranks that the
// test drives (plane_rank.h).
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <source_location>
#include <string>
#include <utility>
#include <vector>

#include "config/options.h"
#include "daemon/plane/data_plane.h"
#include "gpu_backends/host/host_backend.h"
#include "tests/internode/core/gate_transport.h"
#include "tests/internode/core/plane_rank.h"
#include "tests/support/patience.h"

namespace ferry::progress {
struct Seat;
struct ServedSegments;
}  // namespace ferry::progress

namespace ferry::daemon {

struct TurnStatistics;

inline constexpr char kJob[] = "job";

// The planes' reports through their hooks.
struct Told {
  std::mutex mutex;
  std::vector<std::string> violations;
  std::vector<std::string> failed_jobs;
  std::vector<ErrorCode> failures;  // of the failed jobs
  std::vector<uint64_t> lost_links;
  std::vector<std::string> lost_because;  // as lost_links
  struct LinkWish {
    uint32_t rank = 0, peer = 0;
    shm::LinkMatter matter{};
  };
  std::vector<LinkWish> link_wishes;
  std::vector<std::string> refusals;   // of regions
  std::map<uint32_t, Status> imports;  // by worker processes: the last one of each rank

  // A copy, while they may report more.
  template <typename T>
  T Get(T Told::*what) {
    std::lock_guard lock(mutex);
    return this->*what;
  }
  std::vector<std::string> TakeRefusals() {
    std::lock_guard lock(mutex);
    return std::exchange(refusals, {});
  }
};

// Small, fast options, and those that the environment sets (FERRY_WORKER_MODE and the like).
config::Options FastOptions(uint64_t operation_timeout_ms = tests::kPatienceMs / 2);
// Returns true if worker processes look after the ranks of this test.
bool InWorkerProcess();
// Set by in_own_home.cc, in targets that have it.
inline bool in_own_home = false;
// By which planes reach each other.
inline const char* PlaneProvider() { return in_own_home ? "ferry-tcp" : "net"; }
// Gives up this thread's capabilities (and its children's), except those of the mask.
void DropCapabilities(uint64_t kept);

// A message from one rank to another, with the request at either end.
struct Passage {
  uint32_t from = 0, to = 0;
  uint32_t send = 0, receive = 0;
};

// Where its ends lie, as the parameter of a test.
struct Memory {
  const char* name;
  bool source_in_heap;
  bool destination_in_heap;

  shm::Location Source(uint64_t offset, const void* address) const {
    return source_in_heap ? InHeap(offset) : Private(address);
  }
  shm::Location Destination(uint64_t offset, const void* address) const {
    return destination_in_heap ? InHeap(offset) : Private(address);
  }
};
inline constexpr Memory kAllMemory[] = {{"HeapToHeap", true, true},
                                        {"HeapToPrivate", true, false},
                                        {"PrivateToHeap", false, true},
                                        {"PrivateToPrivate", false, false}};

// Each target runs its tests in one of the two homes of a core: ferryd, or that of own_plane.h.
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
  // As Attach, for a rank that is the only one on its node so far.
  void AttachAlone(uint32_t rank);
  // Between nodes 0 and 1, as the control plane does: cuts the link, and connects both in its next
  // life once their ranks have noticed. Their ranks stay cut off until the nodes have returned.
  void Cut(ErrorCode error = ErrorCode::kLinkDown);
  void Reconnect(uint64_t life);
  void ReturnNodes();
  void RemoveRank(uint32_t rank);
  // Planes and ranks have such devices when they are started.
  void UseDevices(uint64_t h2d_mb_per_s, uint64_t d2h_mb_per_s);
  // Only `node` has these faults (daemon/faults/) when it is started.
  void GiveFaults(uint32_t node, const std::string& rules);
  uint64_t Incarnation(uint32_t node) const { return 100 + node; }

  void ProgressAll();
  // As Eventually, with all ranks progressing.
  bool Meanwhile(const std::function<bool()>& condition);
  // Progresses all ranks until the request of `waiter` is complete; returns its error.
  ErrorCode WaitTogether(uint32_t waiter, uint32_t request);
  // Posts the receive, then the send.
  Passage Begin(uint32_t from, uint32_t to, const shm::Location& source,
                const shm::Location& destination, uint64_t size_bytes, int32_t tag = 7);
  // Waits for both ends, which end alike.
  void ExpectEnd(const Passage& passage, ErrorCode error = ErrorCode::kOk,
                 std::source_location where = std::source_location::current());
  // Sends a word, while only the receiver progresses; returns its error, and checks the word.
  ErrorCode Carry(uint32_t from, uint32_t to, int32_t tag = 1);
  void StartTraces();
  bool AllIdle();
  // Idle, with no staging memory in use, nothing on its way, and nothing to complain of.
  void ExpectNothingLeft();
  Gate& gate(uint32_t node) { return *gates_[node]; }
  DataPlane& plane(uint32_t node) { return *planes_[node]; }
  TurnStatistics Turns(uint32_t node) const;
  PlaneRank& rank(uint32_t rank) { return *ranks_[rank]; }
  uint32_t NodeOf(uint32_t rank) const { return node_of_rank_[rank]; }

  std::function<void(Session&)> amend_session_;  // called before a session is added
  std::function<void(Region&)> amend_device_;    // and before a region of device memory is
  std::function<void(uint32_t node, config::Options&)> amend_options_;  // called for each node
  engine::EngineOptions engine_options_;                                // for the ranks
  // If set, planes and ranks have such devices, and each rank has a region of device memory.
  std::optional<gpu::HostBackendOptions> devices_;
  progress::Seat (*seat_)(const progress::ServedSegments&) = nullptr;  // see OwnPlane::seat
  bool planes_have_gpus_ = true;  // if false, only the ranks have them
  bool keep_capabilities_ = false;
  Told told_;
  std::unique_ptr<gpu::GpuBackend> rank_gpu_;          // outlives the ranks
  std::vector<std::shared_ptr<gpu::GpuSource>> gpus_;  // by node; null without GPUs
  std::vector<std::shared_ptr<Gate>> gates_;           // by node
  std::vector<std::unique_ptr<DataPlane>> planes_;
  std::vector<std::unique_ptr<PlaneRank>> ranks_;
  std::vector<uint32_t> node_of_rank_;
  std::vector<uint32_t> local_index_;
  std::vector<uint32_t> local_size_;  // by node
};

}  // namespace ferry::daemon
