// A rank inside a test process, driven by the test in place of the client library: real segments
// and the real engine. And what tests with such ranks need besides.
#pragma once

#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <vector>

#include "daemon/plane/data_plane.h"
#include "daemon/session/session.h"
#include "engine/rank_engine.h"
#include "engine/session_view.h"
#include "gpu_backends/api/backend.h"
#include "shm/lease.h"
#include "tests/support/eventually.h"

namespace ferry::daemon {

inline constexpr uint64_t kHeapBytes = 8 << 20;
inline constexpr uint32_t kHeapRegion = 1;
inline constexpr uint64_t kDeviceBytes = 8 << 20;
inline constexpr uint32_t kDeviceRegion = 2;

// Where a test buffer lies: in the rank's heap, or in this process's own memory.
shm::Location InHeap(uint64_t offset);
// In the rank's device memory, which only streams reach; needs PlaneTest::devices_.
shm::Location InDevice(uint64_t offset);
shm::Location Private(const void* address);

// Makes a command of a rank to its daemon.
template <typename Payload>
shm::Descriptor MakeCommand(shm::DescriptorKind kind, const Payload& payload) {
  shm::Descriptor command{};
  command.kind = static_cast<uint8_t>(kind);
  std::memcpy(command.payload, &payload, sizeof(payload));
  return command;
}

// A rank, as the progress plane knows it: by its session.
class PlaneRank {
 public:
  // `session` is the daemon's; the rank maps its segments once more.
  PlaneRank(std::shared_ptr<Session> session, const JobPlan& plan, shm::Mapping session_map,
            shm::Mapping inbox_map);

  // Sends as the client library does. Returns the request, or 0 if it was done at once.
  uint32_t Send(uint32_t destination, int32_t tag, const void* data, uint64_t size_bytes);
  // `flags`: of the request.
  uint32_t SendFrom(uint32_t destination, int32_t tag, const shm::Location& where,
                    uint64_t size_bytes, uint32_t flags = 0);
  uint32_t Receive(int32_t source, int32_t tag, const shm::Location& where, uint64_t size_bytes);
  bool Cancel(uint32_t request);
  // One step of the engine, and its consequences. False if the lease was taken.
  bool Progress();
  // Returns true if the request is complete; does the rest that only a rank's thread may do.
  bool Test(uint32_t request);
  // Progresses until it is complete (20 s at most). Returns its error.
  ErrorCode Wait(uint32_t request);
  uint64_t MessageBytes(uint32_t request) const;

  // Raw access, for wrong commands.
  void PushToDaemon(const shm::Descriptor& descriptor);
  void RingDaemon();
  void RingLink();  // the rank's own core, in its seat for direct links
  uint32_t NewRequest();
  shm::RequestLayout& Slot(uint32_t request) { return *view_.request(request); }

  uint32_t rank() const { return session_->rank; }
  Session& session() { return *session_; }
  engine::RankEngine& engine() { return *engine_; }
  bool has_engine() const { return engine_ != nullptr; }
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
  // A request that has not been started.
  uint32_t Prepare(shm::RequestKind kind, int32_t peer, int32_t tag, const shm::Location& where,
                   uint64_t size_bytes);
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

using tests::Eventually;

// Host memory that a rank may add to its heap.
std::shared_ptr<Region> MakeRegion(uint32_t id, uint64_t bytes);

// The whole segment.
shm::Mapping MapAll(int fd);

// A recognisable sequence of bytes.
std::vector<std::byte> Pattern(uint64_t size_bytes, uint32_t seed);

}  // namespace ferry::daemon
