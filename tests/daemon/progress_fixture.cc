#include "tests/daemon/progress_fixture.h"

#include <linux/capability.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "common/clock.h"
#include "config/environment.h"
#include "config/loader.h"
#include "engine/transfer.h"
#include "shm/atomic.h"
#include "transports/loader/loader.h"

namespace ferry::daemon {
namespace {

constexpr uint32_t kRequestLimit = 4096;
constexpr uint32_t kUnexpectedLimit = 16384;
constexpr uint64_t kPatienceNs = 20'000'000'000;
constexpr uint32_t kHolder = 7;  // the id of this rank's thread in its lease
constexpr uint64_t kJobKey = 0x1234;

uint64_t LinkKey(uint32_t from, uint32_t to) { return 0x1000 + from * 16 + to; }

shm::Mapping MapAll(int fd) {
  StatusOr<shm::Mapping> mapping = shm::MapSegment(fd, 0);
  EXPECT_TRUE(mapping.ok()) << mapping.status().ToString();
  return std::move(*mapping);
}

}  // namespace

shm::Location InHeap(uint64_t offset) { return {kHeapRegion, 0, offset}; }
shm::Location InDevice(uint64_t offset) { return {kDeviceRegion, shm::kLocationByStream, offset}; }
shm::Location Private(const void* address) { return {0, 0, reinterpret_cast<uint64_t>(address)}; }

bool InWorkerProcess() { return FastOptions().worker_mode == "process"; }

void DropCapabilities(uint64_t kept) {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[2] = {};
  ASSERT_EQ(syscall(SYS_capget, &header, &data), 0);
  for (int i = 0; i < 2; ++i) {
    data[i].effective &= static_cast<uint32_t>(kept >> (32 * i));
    data[i].permitted = data[i].effective;
    data[i].inheritable = 0;
  }
  ASSERT_EQ(syscall(SYS_capset, &header, &data), 0);
}

bool Eventually(const std::function<bool()>& condition) {
  const uint64_t end_ns = MonotonicNs() + kPatienceNs;
  while (!condition()) {
    if (MonotonicNs() > end_ns) {
      return false;
    }
    sched_yield();
  }
  return true;
}

std::shared_ptr<Region> MakeRegion(uint32_t id, uint64_t bytes) {
  auto region = std::make_shared<Region>();
  region->id = id;
  region->fd = std::move(*shm::CreateSegment("test-region", bytes));
  region->mapping = std::move(*shm::MapSegment(region->fd.get(), 0));
  return region;
}

std::vector<std::byte> Pattern(uint64_t size_bytes, uint32_t seed) {
  std::vector<std::byte> bytes(size_bytes);
  for (uint64_t i = 0; i < size_bytes; ++i) {
    bytes[i] = static_cast<std::byte>(i * 7 + i / 251 + seed);
  }
  return bytes;
}

namespace {

// The GPUs of worker processes: those of the daemon, or none.
void TellWorkers(const gpu::HostBackendOptions& devices, bool have_gpus, config::Options* options) {
  if (!have_gpus) {
    options->gpu_backend = "cuda";
    options->cuda_library = "/not/there";
    return;
  }
  options->gpu_backend = "host";
  options->host_gpu_memory_bytes = devices.device_memory_bytes;
  options->host_link_h2d_mb_per_s = devices.link.h2d_mb_per_s;
  options->host_link_d2h_mb_per_s = devices.link.d2h_mb_per_s;
  options->host_link_latency_us = devices.link.latency_us;
  options->host_link_guard = 1;
}

}  // namespace

// ---- PlaneRank ----

PlaneRank::PlaneRank(std::shared_ptr<Session> session, const JobPlan& plan,
                     shm::Mapping session_map, shm::Mapping inbox_map)
    : session_(std::move(session)),
      plan_(plan),
      session_map_(std::move(session_map)),
      inbox_map_(std::move(inbox_map)) {
  StatusOr<engine::SessionView> view = engine::ViewSession(
      session_map_.base(), session_map_.size_bytes(), inbox_map_.base(), inbox_map_.size_bytes());
  EXPECT_TRUE(view.ok()) << view.status().ToString();
  view_ = *view;
  lease_ = shm::Lease(&view_.layout->lease);
}

void PlaneRank::BuildEngine(const std::vector<PlaneRank*>& local_ranks,
                            const engine::EngineOptions& options) {
  local_ranks_ = local_ranks;
  peers_.by_rank.resize(plan_.size());
  peers_.rank_of_local.resize(local_ranks.size());
  for (uint32_t rank = 0; rank < plan_.size(); ++rank) {
    peers_.by_rank[rank].local = plan_.node_of_rank[rank] == plan_.node;
    peers_.by_rank[rank].local_index = plan_.local_index[rank];
  }
  for (PlaneRank* local : local_ranks) {
    peers_.by_rank[local->rank()].SetInbox(local->view_.inbox);
    peers_.rank_of_local[local->session().local_index] = local->rank();
  }
  engine_ = std::make_unique<engine::RankEngine>(view_, peers_, options, engine::Runner::kRank);
}

std::shared_ptr<const Region> PlaneRank::MakeHeap() {
  auto region = std::make_shared<Region>();
  StatusOr<UniqueFd> fd = shm::CreateSegment("test-heap", kHeapBytes);
  EXPECT_TRUE(fd.ok());
  heap_ = MapAll(fd->get());
  region->id = kHeapRegion;
  region->mapping = MapAll(fd->get());
  region->fd = std::move(*fd);
  return region;
}

std::shared_ptr<Region> PlaneRank::MakeDevice(gpu::GpuBackend& gpu) {
  const StatusOr<void*> memory = gpu.AllocateDevice(0, kDeviceBytes);
  EXPECT_TRUE(memory.ok()) << memory.status().ToString();
  device_ = static_cast<std::byte*>(*memory);
  StatusOr<gpu::IpcHandle> handle = gpu.ExportIpc(device_);
  EXPECT_TRUE(handle.ok()) << handle.status().ToString();
  auto region = std::make_shared<Region>();
  region->id = kDeviceRegion;
  region->kind = RegionKind::kDevice;
  region->by_stream = true;
  region->device_bytes = handle->size_bytes;
  region->allocation_id = handle->allocation_id;
  region->fd = std::move(handle->fd);
  return region;
}

std::byte* PlaneRank::At(const shm::Location& where) {
  if (where.region == 0) {
    return reinterpret_cast<std::byte*>(where.address);
  }
  return (where.region == kDeviceRegion ? device_ : heap_.base()) + where.address;
}

void PlaneRank::Lock() {
  while (!lease_.TryAcquire(kHolder)) {
    sched_yield();
  }
}

void PlaneRank::Unlock(const engine::Effects& effects) {
  lease_.Release(kHolder);
  const uint32_t own_lane = session_->local_index;
  effects.lanes.ForEach([&](uint32_t lane) { local_ranks_[lane]->wake().PublishLane(own_lane); });
  effects.wakes.ForEach([&](uint32_t lane) { local_ranks_[lane]->wake().Publish(); });
  bool ring = effects.to_daemon;
  effects.urgent.ForEach([&](uint32_t lane) {
    if (local_ranks_[lane]->wake().MustAttend() &&
        shm::Wake(&view_.layout->daemon_wake).AnnounceLane(lane)) {
      ring = true;
    }
  });
  if (ring) {
    RingDaemon();
  }
}

void PlaneRank::RingDaemon() {
  if (shm::Wake(&view_.layout->daemon_wake).AnnounceLane(session_->local_size)) {
    const uint64_t one = 1;
    ASSERT_EQ(write(session_->doorbell.get(), &one, sizeof(one)), sizeof(one));
  }
}

uint32_t PlaneRank::NewRequest() {
  const uint32_t fresh = view_.layout->request_fresh;
  for (uint32_t request = 1; request < fresh; ++request) {
    if (shm::LoadRelaxed(Slot(request).state) == static_cast<uint32_t>(shm::RequestState::kFree)) {
      return request;
    }
  }
  shm::StoreRelease(view_.layout->request_fresh, fresh + 1);
  return fresh;
}

uint32_t PlaneRank::Send(uint32_t destination, int32_t tag, const void* data, uint64_t size_bytes) {
  const engine::SendArguments send{destination, 0, tag, size_bytes};
  engine::Effects effects;
  engine_->OpenLane(destination);
  Lock();
  bool sent = false;
  if (size_bytes <= shm::kInlineBytes) {
    sent = engine_->TrySendInline(send, data, effects);
  } else if (size_bytes <= shm::kCellBytes) {
    const uint32_t cell = engine_->TryTakeCell(destination);
    if (cell != shm::kNoCell) {
      std::memcpy(engine_->CellBytes(destination, cell), data, size_bytes);
      sent = engine_->TrySendCell(send, cell, effects);
    }
  }
  Unlock(effects);
  return sent ? 0 : SendFrom(destination, tag, Private(data), size_bytes);
}

uint32_t PlaneRank::SendFrom(uint32_t destination, int32_t tag, const shm::Location& where,
                             uint64_t size_bytes) {
  engine_->OpenLane(destination);
  const uint32_t request = NewRequest();
  shm::RequestLayout& slot = Slot(request);
  slot.generation += 1;
  slot.kind = static_cast<uint32_t>(shm::RequestKind::kSend);
  slot.context = 0;
  slot.peer = static_cast<int32_t>(destination);
  slot.tag = tag;
  slot.buffer = where;
  slot.size_bytes = size_bytes;
  slot.error = 0;
  slot.descriptor_kind = static_cast<uint8_t>(shm::DescriptorKind::kRts);
  if (size_bytes <= shm::kInlineBytes) {
    slot.descriptor_kind = static_cast<uint8_t>(shm::DescriptorKind::kEager);
    std::memcpy(slot.payload, At(where), size_bytes);
  }
  shm::StoreRelease(slot.state, static_cast<uint32_t>(shm::RequestState::kInactive));
  engine::Effects effects;
  Lock();
  engine_->StartSend(request, effects);
  Unlock(effects);
  return request;
}

uint32_t PlaneRank::Receive(int32_t source, int32_t tag, const shm::Location& where,
                            uint64_t size_bytes) {
  const uint32_t request = NewRequest();
  shm::RequestLayout& slot = Slot(request);
  slot.generation += 1;
  slot.kind = static_cast<uint32_t>(shm::RequestKind::kReceive);
  slot.context = 0;
  slot.peer = source;
  slot.tag = tag;
  slot.buffer = where;
  slot.size_bytes = size_bytes;
  slot.error = 0;
  shm::StoreRelease(slot.state, static_cast<uint32_t>(shm::RequestState::kInactive));
  engine::Effects effects;
  Lock();
  EXPECT_EQ(engine_->StartReceive(request, effects), ErrorCode::kOk);
  Unlock(effects);
  return request;
}

bool PlaneRank::Cancel(uint32_t request) {
  engine::Effects effects;
  Lock();
  const bool cancelled = engine_->Cancel(request, effects);
  Unlock(effects);
  return cancelled;
}

bool PlaneRank::Progress() {
  if (!lease_.TryAcquire(kHolder)) {
    return false;
  }
  engine::Effects effects;
  engine_->Progress(effects);
  Unlock(effects);
  return true;
}

void PlaneRank::FinishLanded(shm::RequestLayout& slot) {
  const uint64_t size_bytes = std::min(slot.message_bytes, slot.size_bytes);
  shm::LaneConsumer lane(view_.inbox.lane(slot.lane));
  const bool in_cell = (slot.descriptor_flags & shm::kFlagCell) != 0;
  std::memcpy(At(slot.buffer), in_cell ? lane.Cell(slot.cell) : slot.payload, size_bytes);
  if (in_cell) {
    lane.ReleaseCells(slot.cell, slot.message_bytes);
  }
  shm::StoreRelease(slot.state, static_cast<uint32_t>(shm::RequestState::kComplete));
}

bool PlaneRank::Test(uint32_t request) {
  if (request == 0) {
    return true;
  }
  shm::RequestLayout& slot = Slot(request);
  switch (static_cast<shm::RequestState>(shm::LoadAcquire(slot.state))) {
    case shm::RequestState::kLanded:
      FinishLanded(slot);
      return true;
    case shm::RequestState::kTransferring: {
      shm::TransferLayout* transfer =
          peers_.by_rank[slot.transfer_rank].inbox.transfer(slot.transfer_index);
      const engine::TransferProgress look = engine::Look(*transfer, slot.transfer_generation);
      if (!look.done) {
        return false;
      }
      slot.error = static_cast<int32_t>(look.error);
      if (look.error != ErrorCode::kOk &&
          slot.kind == static_cast<uint32_t>(shm::RequestKind::kReceive)) {
        engine::Release(*transfer, slot.transfer_generation);
      }
      shm::StoreRelease(slot.state, static_cast<uint32_t>(shm::RequestState::kComplete));
      return true;
    }
    case shm::RequestState::kComplete:
      return true;
    default:
      return false;
  }
}

ErrorCode PlaneRank::Wait(uint32_t request) {
  const bool done = Eventually([&] {
    Progress();
    return Test(request);
  });
  EXPECT_TRUE(done) << "rank " << rank() << " waits for ever for request " << request;
  if (request == 0 || !done) {
    return done ? ErrorCode::kOk : ErrorCode::kInternal;
  }
  const auto error = static_cast<ErrorCode>(shm::LoadRelaxed(Slot(request).error));
  shm::StoreRelease(Slot(request).state, static_cast<uint32_t>(shm::RequestState::kFree));
  return error;
}

uint64_t PlaneRank::MessageBytes(uint32_t request) const {
  return view_.request(request)->message_bytes;
}

void PlaneRank::PushToDaemon(const shm::Descriptor& descriptor) {
  shm::LaneProducer lane(&view_.layout->to_daemon);
  lane.Open(rank());
  ASSERT_TRUE(lane.TryPush(descriptor));
  RingDaemon();
}

// ---- PlaneTest ---------------------------------------------------------------------------------

config::Options FastOptions() {
  StatusOr<config::Options> loaded = config::LoadOptions({}, config::ProcessEnvironment());
  EXPECT_TRUE(loaded.ok()) << loaded.status().ToString();
  config::Options options = *loaded;
  options.staging_block_bytes = 16 << 10;
  options.staging_blocks = 8;
  options.operation_timeout_ms = 10'000;
  return options;
}

JobPlan PlaneTest::PlanFor(uint32_t node) const {
  JobPlan plan;
  plan.job_id = kJob;
  plan.key = kJobKey;
  plan.node = node;
  plan.node_of_rank = node_of_rank_;
  plan.local_index = local_index_;
  return plan;
}

void PlaneTest::StartPlanes(const std::vector<uint32_t>& ranks_per_node,
                            const config::Options& options) {
  if (options.worker_mode == "process" && !keep_capabilities_) {
    // A worker process has no capabilities, and reaches only ranks that have no more than it.
    ASSERT_NO_FATAL_FAILURE(DropCapabilities(0));
  }
  local_size_ = ranks_per_node;
  for (uint32_t node = 0; node < ranks_per_node.size(); ++node) {
    for (uint32_t i = 0; i < ranks_per_node[node]; ++i) {
      node_of_rank_.push_back(node);
      local_index_.push_back(i);
    }
    config::Options own_options = options;
    if (amend_options_) {
      amend_options_(node, own_options);
    }
    if (devices_) {
      TellWorkers(*devices_, planes_have_gpus_, &own_options);
    }
    transport::TransportOptions transport = transport::TransportOptionsFrom(own_options);
    transport.provider = "net";
    transport.post_timeout_ns = options.operation_timeout_ms * 1'000'000;
    auto created = transport::OpenTransport(transport);
    ASSERT_TRUE(created.ok()) << created.status().ToString();
    PlaneHooks hooks;
    hooks.on_violation = [this](const std::string&, uint32_t, const std::string& text) {
      std::lock_guard lock(told_.mutex);
      told_.violations.push_back(text);
    };
    hooks.on_job_failed = [this](const std::string&, ErrorCode error, const std::string& text) {
      std::lock_guard lock(told_.mutex);
      told_.failed_jobs.push_back(text);
      told_.failures.push_back(error);
    };
    hooks.on_link_lost = [this](uint64_t incarnation, ErrorCode, const std::string&) {
      std::lock_guard lock(told_.mutex);
      told_.lost_links.push_back(incarnation);
    };
    hooks.on_memory_refused = [this](const std::string& text) {
      std::lock_guard lock(told_.mutex);
      told_.refusals.push_back(text);
    };
    hooks.on_import = [this](const std::string&, uint32_t rank, uint32_t, const Status& status) {
      std::lock_guard lock(told_.mutex);
      told_.imports[rank] = status;
    };
    gates_.push_back(std::make_shared<Gate>());
    std::shared_ptr<gpu::GpuSource> gpus;
    if (devices_ && planes_have_gpus_) {
      gpu::HostBackendOptions guarded = *devices_;
      guarded.link.guard = true;  // otherwise the daemon must not touch it
      gpus = std::make_shared<gpu::GpuSource>([guarded] { return gpu::CreateHostBackend(guarded); },
                                              own_options.gpu_idle_release_ms * 1'000'000);
    }
    auto plane =
        ProgressPlane::Create(own_options,
                              std::make_unique<GateTransport>(std::move(*created), gates_.back(),
                                                              transport.post_timeout_ns),
                              hooks, nullptr, gpus);
    gpus_.push_back(gpus);
    ASSERT_TRUE(plane.ok()) << plane.status().ToString();
    planes_.push_back(std::move(*plane));
  }
  ranks_.resize(node_of_rank_.size());
  for (uint32_t node = 0; node < planes_.size(); ++node) {
    ASSERT_TRUE(planes_[node]->AddJob(PlanFor(node)).ok());
    for (uint32_t other = 0; other < planes_.size(); ++other) {
      if (other != node) {
        const Status status = Connect(node, other, 0);
        ASSERT_TRUE(status.ok()) << status.ToString();
      }
    }
  }
}

Status PlaneTest::Connect(uint32_t node, uint32_t other, uint64_t life) {
  const NodeRoute route{planes_[other]->FabricAddress(), LinkKey(node, other) + life,
                        LinkKey(other, node) + life, Incarnation(other), life};
  return planes_[node]->AddNode(kJob, other, route);
}

std::shared_ptr<Session> PlaneTest::MakeSession(uint32_t rank) const {
  engine::SegmentPlan segments;
  segments.rank = rank;
  segments.job_size = static_cast<uint32_t>(node_of_rank_.size());
  segments.local_size = local_size_[NodeOf(rank)];
  segments.request_limit = kRequestLimit;
  segments.unexpected_limit = kUnexpectedLimit;
  auto session = std::make_shared<Session>();
  session->job_id = kJob;
  session->rank = rank;
  session->local_index = local_index_[rank];
  session->local_size = segments.local_size;
  session->pid = getpid();
  session->uid = getuid();
  session->private_memory_reachable = true;
  session->doorbell.Reset(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  session->session_fd = std::move(*shm::CreateSegment("test-session", segments.session_bytes()));
  session->inbox_fd = std::move(*shm::CreateSegment("test-inbox", segments.inbox_bytes()));
  session->session_map = MapAll(session->session_fd.get());
  session->inbox_map = MapAll(session->inbox_fd.get());
  engine::InitializeSegments(segments, static_cast<uint32_t>(getpid()), session->session_map.base(),
                             session->inbox_map.base());
  session->request_limit = kRequestLimit;
  session->match_capacity = kUnexpectedLimit;
  if (amend_session_) {
    amend_session_(*session);
  }
  return session;
}

void PlaneTest::Attach(uint32_t rank) {
  std::shared_ptr<Session> session = MakeSession(rank);
  ranks_[rank] =
      std::make_unique<PlaneRank>(session, PlanFor(NodeOf(rank)), MapAll(session->session_fd.get()),
                                  MapAll(session->inbox_fd.get()));
  ProgressPlane& plane = *planes_[NodeOf(rank)];
  Status status = plane.AddSession(session);
  ASSERT_TRUE(status.ok()) << status.ToString();
  ASSERT_TRUE(Eventually([&] { return session->reach_settled.load(); }));
  status = plane.AddRegion(kJob, rank, ranks_[rank]->MakeHeap());
  ASSERT_TRUE(status.ok()) << status.ToString();
  if (devices_) {
    const std::shared_ptr<Region> region = ranks_[rank]->MakeDevice(*rank_gpu_);
    status = Import(rank, region);
    EXPECT_EQ(status.ok(), planes_have_gpus_) << status.ToString();
    EXPECT_EQ(region->is_staged(), planes_have_gpus_);
    status = plane.AddRegion(kJob, rank, region);
    ASSERT_TRUE(status.ok()) << status.ToString();
  }
}

Status PlaneTest::Import(uint32_t rank, const std::shared_ptr<Region>& region) {
  const Status status = planes_[NodeOf(rank)]->ImportRegion(ranks_[rank]->session(), region);
  if (status.code() != ErrorCode::kWouldBlock) {
    EXPECT_FALSE(InWorkerProcess() && planes_have_gpus_) << status.ToString();
    return status;
  }
  std::map<uint32_t, Status>::node_type answer;
  EXPECT_TRUE(Eventually([&] {
    std::lock_guard lock(told_.mutex);
    answer = told_.imports.extract(rank);
    return !answer.empty();
  }));
  if (answer.empty()) {
    return status;
  }
  region->in_worker = answer.mapped().ok();
  return answer.mapped();
}

void PlaneTest::BuildEngines() {
  for (uint32_t node = 0; node < planes_.size(); ++node) {
    std::vector<PlaneRank*> local(local_size_[node]);
    for (uint32_t rank = 0; rank < ranks_.size(); ++rank) {
      if (NodeOf(rank) == node) {
        local[local_index_[rank]] = ranks_[rank].get();
      }
    }
    for (PlaneRank* rank : local) {
      rank->BuildEngine(local, engine_options_);
    }
  }
}

void PlaneTest::Start(const std::vector<uint32_t>& ranks_per_node, const config::Options& options) {
  if (devices_) {
    auto made = gpu::CreateHostBackend(*devices_);
    ASSERT_TRUE(made.ok()) << made.status().ToString();
    rank_gpu_ = std::move(*made);
  }
  ASSERT_NO_FATAL_FAILURE(StartPlanes(ranks_per_node, options));
  for (uint32_t rank = 0; rank < ranks_.size(); ++rank) {
    ASSERT_NO_FATAL_FAILURE(Attach(rank));
  }
  BuildEngines();
}

void PlaneTest::Cut() {
  plane(0).NodeFailed(Incarnation(1), ErrorCode::kLinkDown);
  plane(1).NodeFailed(Incarnation(0), ErrorCode::kLinkDown);
}

void PlaneTest::Reconnect(uint64_t life) {
  for (const uint32_t node : {0U, 1U}) {
    ASSERT_TRUE(Eventually([&] {
      for (const auto& one : ranks_) {
        one->Progress();
      }
      return Connect(node, 1 - node, life).ok();
    }));
  }
}

ErrorCode PlaneTest::WaitTogether(uint32_t waiter, uint32_t request) {
  EXPECT_TRUE(Eventually([&] {
    for (const auto& one : ranks_) {
      one->Progress();
    }
    return rank(waiter).Test(request);
  })) << "rank "
      << waiter << ", request " << request;
  return rank(waiter).Wait(request);
}

void PlaneTest::RemoveRank(uint32_t rank) {
  if (planes_[NodeOf(rank)] != nullptr) {
    planes_[NodeOf(rank)]->RemoveSession(kJob, rank);
  }
}

void PlaneTest::Stop() {
  for (const auto& gate : gates_) {
    gate->closed = false;
  }
  for (uint32_t rank = 0; rank < ranks_.size(); ++rank) {
    RemoveRank(rank);
  }
  for (const auto& plane : planes_) {
    if (plane != nullptr) {
      plane->RemoveJob(kJob);
    }
  }
  planes_.clear();
  gates_.clear();
  ranks_.clear();
  gpus_.clear();
  rank_gpu_.reset();
  node_of_rank_.clear();
  local_index_.clear();
}

}  // namespace ferry::daemon
