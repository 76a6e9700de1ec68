#include "tests/internode/core/progress_fixture.h"

#include <linux/capability.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <future>
#include <utility>

#include "config/environment.h"
#include "config/loader.h"
#include "daemon/progress/progress_plane.h"
#include "tests/internode/core/own_plane.h"
#include "transports/loader/loader.h"

namespace ferry::daemon {
namespace {

constexpr uint32_t kRequestLimit = 4096;
constexpr uint32_t kUnexpectedLimit = 16384;
constexpr uint64_t kJobKey = 0x1234;

uint64_t LinkKey(uint32_t from, uint32_t to) { return 0x1000 + from * 16 + to; }

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

config::Options FastOptions(uint64_t operation_timeout_ms) {
  StatusOr<config::Options> loaded = config::LoadOptions({}, config::ProcessEnvironment());
  EXPECT_TRUE(loaded.ok()) << loaded.status().ToString();
  config::Options options = *loaded;
  options.staging_block_bytes = 16 << 10;
  options.staging_blocks = 8;
  options.operation_timeout_ms = operation_timeout_ms;
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
    transport.provider = PlaneProvider();
    transport.attachment_bytes = in_own_home ? 512 << 10 : transport.attachment_bytes;
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
    hooks.on_link_down = [this](uint64_t incarnation, ErrorCode, const std::string& text) {
      std::lock_guard lock(told_.mutex);
      told_.lost_links.push_back(incarnation);
      told_.lost_because.push_back(text);
    };
    hooks.on_link_wanted = [this](const std::string&, uint32_t rank, uint32_t peer,
                                  shm::LinkMatter matter) {
      std::lock_guard lock(told_.mutex);
      told_.link_wishes.push_back({rank, peer, matter});
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
    auto gated = std::make_unique<GateTransport>(std::move(*created), gates_.back(),
                                                 transport.post_timeout_ns, /*pins=*/!in_own_home);
    gpus_.push_back(gpus);
    if (in_own_home) {
      const auto find_rank = [this](uint32_t rank) {
        return rank < ranks_.size() ? ranks_[rank].get() : nullptr;
      };
      auto plane = OwnPlane::Create(own_options, std::move(gated), hooks, find_rank);
      ASSERT_TRUE(plane.ok()) << plane.status().ToString();
      (*plane)->seat = seat_ != nullptr ? seat_ : (*plane)->seat;
      planes_.push_back(std::move(*plane));
    } else {
      auto plane = ProgressPlane::Create(own_options, std::move(gated), hooks, nullptr, gpus);
      ASSERT_TRUE(plane.ok()) << plane.status().ToString();
      planes_.push_back(std::move(*plane));
    }
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
  const NodeRoute route{planes_[other]->FabricAddressFor(0), LinkKey(node, other) + life,
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
  session->job_size = segments.job_size;
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
  DataPlane& plane = *planes_[NodeOf(rank)];
  Status status = plane.AddSession(session);
  ASSERT_TRUE(status.ok()) << status.ToString();
  ASSERT_TRUE(Eventually([&] { return session->reach_settled.load(); }));
  status = plane.AddRegion(kJob, rank, ranks_[rank]->MakeHeap());
  ASSERT_TRUE(status.ok()) << status.ToString();
  if (devices_) {
    const std::shared_ptr<Region> region = ranks_[rank]->MakeDevice(*rank_gpu_);
    if (amend_device_) {
      amend_device_(*region);
    }
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

void PlaneTest::AttachAlone(uint32_t rank) {
  Attach(rank);
  ranks_[rank]->BuildEngine({ranks_[rank].get()});
}

void PlaneTest::Cut(ErrorCode error) {
  plane(0).NodeFailed(Incarnation(1), error);
  plane(1).NodeFailed(Incarnation(0), error);
}

void PlaneTest::Reconnect(uint64_t life) {
  for (const uint32_t node : {0U, 1U}) {
    ASSERT_TRUE(Meanwhile([&] { return Connect(node, 1 - node, life).ok(); }));
  }
}

void PlaneTest::ReturnNodes() {
  plane(0).NodeReturned(kJob, 1);
  plane(1).NodeReturned(kJob, 0);
}

void PlaneTest::UseDevices(uint64_t h2d_mb_per_s, uint64_t d2h_mb_per_s) {
  devices_.emplace();
  devices_->link = {.h2d_mb_per_s = h2d_mb_per_s, .d2h_mb_per_s = d2h_mb_per_s, .latency_us = 5};
}

void PlaneTest::GiveFaults(uint32_t node, const std::string& rules) {
  amend_options_ = [node, rules](uint32_t one, config::Options& options) {
    options.faults = one == node ? rules : "";
  };
}

void PlaneTest::ProgressAll() {
  for (const auto& one : ranks_) {
    one->Progress();
  }
}

bool PlaneTest::Meanwhile(const std::function<bool()>& condition) {
  return Eventually([&] {
    ProgressAll();
    return condition();
  });
}

ErrorCode PlaneTest::WaitTogether(uint32_t waiter, uint32_t request) {
  EXPECT_TRUE(Meanwhile([&] { return rank(waiter).Test(request); }))
      << "rank " << waiter << ", request " << request;
  return rank(waiter).Wait(request);
}

Passage PlaneTest::Begin(uint32_t from, uint32_t to, const shm::Location& source,
                         const shm::Location& destination, uint64_t size_bytes, int32_t tag) {
  Passage passage{from, to};
  passage.receive = rank(to).Receive(static_cast<int32_t>(from), tag, destination, size_bytes);
  passage.send = rank(from).SendFrom(to, tag, source, size_bytes);
  return passage;
}

void PlaneTest::ExpectEnd(const Passage& passage, ErrorCode error, std::source_location where) {
  const testing::ScopedTrace trace(where.file_name(), static_cast<int>(where.line()), "");
  EXPECT_EQ(WaitTogether(passage.to, passage.receive), error);
  EXPECT_EQ(WaitTogether(passage.from, passage.send), error);
}

ErrorCode PlaneTest::Carry(uint32_t from, uint32_t to, int32_t tag) {
  const uint64_t word = 4711 + 16 * from + to;
  uint64_t got = 0;
  const uint32_t receive =
      rank(to).Receive(static_cast<int32_t>(from), tag, Private(&got), sizeof(got));
  rank(from).Send(to, tag, &word, sizeof(word));
  const ErrorCode error = rank(to).Wait(receive);
  EXPECT_TRUE(error != ErrorCode::kOk || got == word);
  return error;
}

void PlaneTest::StartTraces() {
  for (const auto& plane : planes_) {
    ASSERT_TRUE(plane->StartTrace().ok());
  }
}

bool PlaneTest::AllIdle() {
  return Meanwhile([this] {
    return std::all_of(planes_.begin(), planes_.end(),
                       [](const auto& plane) { return plane == nullptr || plane->Idle(); });
  });
}

void PlaneTest::ExpectNothingLeft() {
  for (const auto& plane : planes_) {
    EXPECT_TRUE(Meanwhile([&] {
      const NicStatistics nic = plane->Nic();
      return plane->Idle() && nic.staging_busy == 0 && nic.staging_waits == 0 &&
             nic.outstanding == 0;
    })) << plane->Nic().staging_busy;
  }
  EXPECT_TRUE(told_.Get(&Told::violations).empty());
  EXPECT_TRUE(told_.Get(&Told::failed_jobs).empty());
}

void PlaneTest::RemoveRank(uint32_t rank) {
  if (planes_[NodeOf(rank)] != nullptr) {
    std::promise<void> let_go;
    planes_[NodeOf(rank)]->RemoveSession(kJob, rank, {[] {}, [&let_go] { let_go.set_value(); }});
    let_go.get_future().wait();
    planes_[NodeOf(rank)]->ReleaseSession(kJob, rank);
  }
}

TurnStatistics PlaneTest::Turns(uint32_t node) const {
  return in_own_home ? static_cast<const OwnPlane&>(*planes_[node]).Turns()
                     : static_cast<const ProgressPlane&>(*planes_[node]).Turns();
}

void PlaneTest::Stop() {
  for (const auto& gate : gates_) {
    gate->closed = false;
    gate->GoOn();
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
