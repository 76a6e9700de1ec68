#include "daemon/jobs/job_regions.h"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <chrono>
#include <utility>

#include "common/log.h"

namespace ferry::daemon {
namespace {

// The limit of one user even without a quota, so that sparse regions do not use up our address
// space (2^47).
constexpr uint64_t kMaxUserBytes = uint64_t{1} << 44;
constexpr std::chrono::milliseconds kGpuLook{500};

}  // namespace

JobRegions::JobRegions(boost::asio::io_context& context, Jobs& jobs, DataPlane& data_plane,
                       QuotaLedger& quotas, const RegistryLimits& limits)
    : context_(context),
      jobs_(jobs),
      data_plane_(data_plane),
      quotas_(quotas),
      limits_(limits),
      gpu_timer_(context) {}

StatusOr<QuotaHold> JobRegions::Reserve(const Session& session, uint64_t size_bytes) {
  StatusOr<QuotaHold> hold = quotas_.Take(
      session.uid,
      {.regions = 1, .pinned_bytes = std::max(size_bytes, shm::RoundUpToPage(size_bytes))});
  if (!hold.ok()) {
    return Status(hold.status().code(),
                  RankText(session.rank, session.job_id) + ": " + hold.status().message());
  }
  if (quotas_.Used()[session.uid].pinned_bytes > kMaxUserBytes) {
    return Status(ErrorCode::kLimitExceeded,
                  RankText(session.rank, session.job_id) + ": with a region of " +
                      std::to_string(size_bytes) + " bytes the regions of uid " +
                      std::to_string(session.uid) + " would have more than " +
                      std::to_string(kMaxUserBytes) +
                      " bytes, which is all that one user gets of the daemon's address space");
  }
  return hold;
}

void JobRegions::Import(const Session& session, const std::shared_ptr<Region>& region,
                        std::function<void()> done) {
  JobRecord* job = nullptr;
  Rank* rank = jobs_.FindRank(session, &job);
  if (rank == nullptr || rank->state < RankState::kServing ||
      rank->importing.contains(region->id)) {
    return done();  // Add says what is wrong
  }
  const Status status = data_plane_.ImportRegion(session, region);
  if (status.code() != ErrorCode::kWouldBlock) {
    NoteImport(*job, session.rank, *region, status);
    WatchGpus();
    return done();
  }
  // The rank waits no longer than attach_timeout_ms for an answer: it gets one before that.
  auto timer = std::make_unique<boost::asio::steady_timer>(
      context_, std::chrono::milliseconds(limits_.attach_timeout_ms / 2));
  timer->async_wait([this, alive = jobs_.alive(), id = session.job_id, index = session.rank,
                     number = region->id](const boost::system::error_code& error) {
    if (!error && *alive) {
      OnImport(id, index, number,
               {ErrorCode::kTimeout, "the job's worker process does not answer in time"});
    }
  });
  rank->importing[region->id] = {region, std::move(done), std::move(timer)};
}

void JobRegions::OnImport(const std::string& job_id, uint32_t rank, uint32_t region,
                          const Status& status) {
  JobRecord* job = jobs_.FindJob(job_id);
  if (job == nullptr || rank >= job->size()) {
    return;
  }
  const auto waiting = job->ranks[rank].importing.extract(region);
  if (waiting.empty()) {
    return;  // the rank has ended, or was told to stage by itself meanwhile
  }
  Importing& import = waiting.mapped();
  import.region->in_worker = status.ok();
  NoteImport(*job, rank, *import.region, status);
  import.done();
}

// Looks now and then until the devices have been given back, some time after the last import ended.
void JobRegions::WatchGpus() {
  if (watches_gpus_ || !data_plane_.ReleaseGpus()) {
    return;
  }
  watches_gpus_ = true;
  gpu_timer_.expires_after(kGpuLook);
  gpu_timer_.async_wait([this, alive = jobs_.alive()](const boost::system::error_code& error) {
    if (!error && *alive) {
      watches_gpus_ = false;
      WatchGpus();
    }
  });
}

// Logs why a region was not imported. It is no error: the rank stages what passes between nodes by
// itself. But that costs the rank's time, and people should know why.
void JobRegions::NoteImport(JobRecord& job, uint32_t rank, const Region& region,
                            const Status& status) {
  if (status.ok()) {
    return;
  }
  const bool is_news =
      status.code() != ErrorCode::kConfiguration && !std::exchange(job.told_of_imports, true);
  spdlog::log(is_news ? spdlog::level::warn : spdlog::level::debug,
              "{} stages its device memory (region {}) for other nodes by itself: {}",
              RankText(rank, job.spec.id), region.id, status.message());
}

Status JobRegions::Add(Session& session, const std::shared_ptr<Region>& region) {
  JobRecord* job = nullptr;
  Rank* rank = jobs_.FindRank(session, &job);
  if (rank == nullptr || rank->state < RankState::kServing) {
    return {ErrorCode::kNotInitialized, RankText(session.rank, session.job_id) +
                                            " must hand over its segments before its regions"};
  }
  const std::string name =
      "region " + std::to_string(region->id) + " of " + RankText(session.rank, session.job_id);
  if (region->id == 0) {
    return {ErrorCode::kInvalidArgument, name + ": 0 names no region"};
  }
  if (region->by_stream && region->kind != RegionKind::kDevice) {
    return {ErrorCode::kInvalidArgument,
            name + " is no device memory, so there is no need of streams to reach it"};
  }
  if (!session.AddRegion(region).ok()) {
    return {ErrorCode::kAlreadyExists, name + " exists already"};
  }
  Status status = data_plane_.AddRegion(session.job_id, session.rank, region);
  if (!status.ok()) {
    (void)session.RemoveRegion(region->id);
  }
  return status;
}

void JobRegions::Remove(Session& session, uint32_t region,
                        std::function<void(const Status&)> done) {
  if (const Status status = jobs_.CheckServed(session); !status.ok()) {
    return done(status);
  }
  std::shared_ptr<const Region> taken = session.RemoveRegion(region);
  if (taken == nullptr) {
    return done({ErrorCode::kNotFound, "rank " + std::to_string(session.rank) + " has no region " +
                                           std::to_string(region)});
  }
  ++leaving_;
  data_plane_.RemoveRegion(
      session.job_id, session.rank, region,
      [this, taken = std::move(taken), done = std::move(done)]() mutable {
        boost::asio::post(context_, [this, taken = std::move(taken), done = std::move(done)] {
          --leaving_;
          done({});
        });
      });
}

}  // namespace ferry::daemon
