#include "tests/fuzz/core_harness.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <future>
#include <thread>
#include <utility>

#include "common/unique_fd.h"
#include "daemon/progress/pairs_and_rings.h"
#include "daemon/staging/copy_pool.h"
#include "shm/atomic.h"
#include "shm/segment.h"
#include "tests/fuzz/open_lanes.h"

namespace ferry::fuzz {
namespace {

constexpr char kJob[] = "job";
constexpr uint32_t kMaxSteps = 64;

template <typename T>
T Must(StatusOr<T> value) {
  if (!value.ok()) {
    abort();
  }
  return std::move(*value);
}

}  // namespace

// Takes what is sent; reads end well, and read nothing.
class CoreHarness::Network final : public transport::Transport {
 public:
  Network() {
    capabilities_.max_message_bytes = 16 << 10;
    capabilities_.max_attachment_bytes = 64 << 10;
  }

  std::deque<std::vector<std::byte>> arrivals;

  const transport::Capabilities& capabilities() const override { return capabilities_; }
  const transport::Description& Describe() const override { return description_; }
  const std::vector<std::byte>& Address() const override { return address_; }
  const transport::Statistics& statistics() const override { return statistics_; }
  std::string LastError() const override { return {}; }
  StatusOr<transport::PeerId> AddPeer(std::span<const std::byte>, uint64_t) override {
    return transport::PeerId{1};
  }
  Status RemovePeer(transport::PeerId) override { return {}; }
  void FailPeer(transport::PeerId, ErrorCode) override {}
  StatusOr<std::unique_ptr<transport::Registration>> PrepareMemory(void*, uint64_t,
                                                                   transport::Access) override {
    return std::make_unique<transport::Registration>();
  }
  StatusOr<transport::MemoryRegion> AdoptMemory(std::unique_ptr<transport::Registration>) override {
    return transport::MemoryRegion{transport::RegionHandle{++next_}, next_, 0};
  }
  StatusOr<std::unique_ptr<transport::Registration>> ReleaseMemory(
      transport::RegionHandle) override {
    return std::make_unique<transport::Registration>();
  }
  ErrorCode SendMessage(transport::PeerId, std::span<const std::byte>, std::span<const std::byte>,
                        uint64_t context, uint64_t) override {
    done_.push_back(context);
    return ErrorCode::kOk;
  }
  ErrorCode SendMessageFrom(transport::PeerId, std::span<const std::byte>,
                            const transport::Attachment& attachment, uint64_t context,
                            uint64_t) override {
    // Out of bounds, the sanitizer speaks.
    const std::vector<std::byte> copy(
        static_cast<const std::byte*>(attachment.data),
        static_cast<const std::byte*>(attachment.data) + attachment.bytes);
    (void)copy;
    done_.push_back(context);
    return ErrorCode::kOk;
  }
  ErrorCode Write(const transport::RmaRequest&, transport::Placement, uint64_t) override {
    return ErrorCode::kUnsupported;
  }
  ErrorCode Read(const transport::RmaRequest& request, uint64_t) override {
    std::memset(request.local, 1, request.bytes);  // out of bounds, the sanitizer speaks
    done_.push_back(request.context);
    return ErrorCode::kOk;
  }
  int Poll(transport::CompletionSink& sink, int, uint64_t) override {
    int count = 0;
    for (std::deque<uint64_t> done = std::exchange(done_, {}); const uint64_t context : done) {
      sink.OnComplete(context, ErrorCode::kOk);
      ++count;
    }
    for (std::deque<std::vector<std::byte>> come = std::exchange(arrivals, {});
         const std::vector<std::byte>& packet : come) {
      sink.OnReceive(transport::kUnknownPeer, packet);
      ++count;
    }
    return count;
  }
  int WaitFd() const override { return -1; }
  bool PrepareToSleep() override { return false; }
  uint64_t NextPollNs(uint64_t) const override { return UINT64_MAX; }

 private:
  transport::Capabilities capabilities_;
  transport::Description description_;
  transport::Statistics statistics_;
  std::vector<std::byte> address_;
  std::deque<uint64_t> done_;
  uint64_t next_ = 0;
};

CoreHarness::CoreHarness() {
  auto network = std::make_unique<Network>();
  network_ = network.get();
  progress::CoreHooks hooks;
  hooks.on_violation = [this](const std::string&, uint32_t rank, const std::string&) {
    ended_.insert(rank);
  };
  hooks.on_job_failed = [this](const std::string&, ErrorCode, const std::string&) {
    job_failed_ = true;
  };
  progress::CoreOptions options;
  options.staging_block_bytes = 4096;
  options.staging_blocks = 4;
  options.staging_least_blocks = 2;
  options.max_held_bytes = 1 << 20;
  progress::CoreParts parts;
  parts.transport = std::move(network);
  parts.copies = std::make_shared<daemon::CopyPool>(1, [] {});
  parts.extend = [](const progress::ExtensionParts& of_core) {
    return std::make_unique<daemon::PairsAndRings>(of_core, daemon::DeferredRules{});
  };
  core_ = Must(progress::ProgressCore::Create(options, std::move(parts), std::move(hooks), [] {}));
  progress::JobPlan plan;
  plan.job_id = kJob;
  plan.key = kJobKey;
  plan.node_of_rank = {0, 0, 1};
  plan.local_index = {0, 1, 0};
  progress::NodeRoute route;
  route.receive_key = kReceiveKey;
  route.link = 5;
  if (!core_->control().AddJob(plan).ok() || !core_->control().AddNode(kJob, 1, route).ok()) {
    abort();
  }
  Attach(0);
  Attach(1);
}

CoreHarness::~CoreHarness() { core_.reset(); }

void CoreHarness::Attach(uint32_t rank) {
  const engine::SegmentPlan plan{rank, 3, 2, kRequests, 16};
  auto session = std::make_shared<progress::ServedSegments>();
  session->job_id = kJob;
  session->rank = session->local_index = rank;
  session->local_size = 2;
  session->job_size = 3;
  session->request_limit = kRequests;
  const UniqueFd session_fd = Must(shm::CreateSegment("fuzz-session", plan.session_bytes()));
  const UniqueFd inbox_fd = Must(shm::CreateSegment("fuzz-inbox", plan.inbox_bytes()));
  session->session_map = Must(shm::MapSegment(session_fd.get(), 0));
  session->inbox_map = Must(shm::MapSegment(inbox_fd.get(), 0));
  engine::InitializeSegments(plan, 1, session->session_map.base(), session->inbox_map.base());
  views_.push_back(
      Must(engine::ViewSession(session->session_map.base(), session->session_map.size_bytes(),
                               session->inbox_map.base(), session->inbox_map.size_bytes())));
  OpenLanes(views_.back().inbox);
  sessions_.push_back(session);
  core_->control().AddSession(session, progress::DaemonSeat(*session));
  const UniqueFd heap_fd = Must(shm::CreateSegment("fuzz-heap", kHeapBytes));
  auto heap = std::make_shared<shm::Mapping>(Must(shm::MapSegment(heap_fd.get(), 0)));
  progress::ClaimableRegion region;
  region.number = 1;
  region.base = heap->base();
  region.size_bytes = heap->size_bytes();
  region.keep_alive = heap;
  heaps_.push_back(std::move(heap));
  if (!core_->control().AddRegion(kJob, rank, std::move(region)).ok()) {
    abort();
  }
}

void CoreHarness::Turn() {
  core_->Turn(++now_ns_);
  // Waits until another thread's work is done, so that the same input does the same.
  while (core_->control().is_pinning()) {
    std::this_thread::yield();
    core_->Turn(++now_ns_);
  }
  Drain(0);
  Drain(1);
}

void CoreHarness::Drain(uint32_t rank) {
  shm::LaneConsumer lane(views_[rank].inbox.lane(shm::DaemonLane(2)));
  for (const shm::Descriptor* next = lane.Peek(); next != nullptr; next = lane.Peek()) {
    if (next->kind == static_cast<uint8_t>(shm::DescriptorKind::kRemoteRts)) {
      shm::RemoteRts rts;
      std::memcpy(&rts, next->payload, sizeof(rts));
      last_offer_ = rts.key;
    }
    if ((next->flags & shm::kFlagCell) != 0) {
      lane.ReleaseCells(next->cell, next->size_bytes);
    }
    lane.Pop();
  }
}

void CoreHarness::PushCommand(const shm::Descriptor& descriptor) {
  shm::LaneProducer(&session(0).to_daemon).TryPush(descriptor);
  RingDaemon();
}

void CoreHarness::RingDaemon() {
  shm::Wake(&session(0).daemon_wake).AnnounceLane(shm::DaemonLane(2));
}

void CoreHarness::Receive(std::vector<std::byte> packet) {
  network_->arrivals.push_back(std::move(packet));
}

void CoreHarness::EndFarRank() { core_->ends().RankEnded(kJob, kFarRank, ErrorCode::kPeerDied); }

void CoreHarness::RemoveAll() {
  for (const uint32_t rank : {0U, 1U}) {
    bool says_no_more = false;
    for (uint32_t n = 0; !core_->control().TryRemoveSession(kJob, rank, 0, &says_no_more); ++n) {
      Turn();
      if (n > 1000) {
        abort();  // it never lets go
      }
    }
  }
  core_->control().RemoveJob(kJob);
}

void RunSteps(FuzzInput input, void (*step)(FuzzInput&, CoreHarness&),
              bool (*is_fair)(const CoreHarness&)) {
  CoreHarness core;
  for (uint32_t n = 0; n < kMaxSteps && !input.empty(); ++n) {
    step(input, core);
  }
  core.Turn();
  core.Turn();
  if (!is_fair(core)) {
    abort();
  }
  core.RemoveAll();
}

}  // namespace ferry::fuzz
