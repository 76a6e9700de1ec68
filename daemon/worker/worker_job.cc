#include "daemon/worker/worker_job.h"

#include <algorithm>
#include <utility>

#include "common/process_memory.h"
#include "shm/word_copy.h"

namespace ferry::daemon {

WorkerJob::WorkerJob(const JobPlan& plan) : plan_(plan) {
  peers_.by_rank = ZeroedArray<engine::Peer>(plan_.size());
  for (uint32_t rank = 0; rank < plan_.size(); ++rank) {
    if (plan_.node_of_rank[rank] != plan_.node) {
      continue;
    }
    engine::Peer& peer = peers_.by_rank[rank];
    peer.local = true;
    peer.local_index = plan_.local_index[rank];
    peers_.rank_of_local.resize(
        std::max<size_t>(peers_.rank_of_local.size(), peer.local_index + 1));
    peers_.rank_of_local[peer.local_index] = rank;
  }
}

StatusOr<engine::SessionView> CheckSegments(const Session& session, const JobPlan& plan) {
  StatusOr<engine::SessionView> view =
      engine::ViewSession(session.session_map.base(), session.session_map.size_bytes(),
                          session.inbox_map.base(), session.inbox_map.size_bytes());
  FERRY_RETURN_IF_ERROR(view.status());
  if (view->rank != session.rank || view->job_size != plan.size() ||
      view->inbox.local_size != session.local_size) {
    return Status(ErrorCode::kCorrupt, "the segments of rank " + std::to_string(session.rank) +
                                           " of job " + plan.job_id + " do not fit the job's plan");
  }
  return view;
}

Status WorkerJob::AddRank(std::shared_ptr<Session> session, std::shared_ptr<uint32_t> wanted,
                          const engine::EngineOptions& options) {
  StatusOr<engine::SessionView> view = CheckSegments(*session, plan_);
  FERRY_RETURN_IF_ERROR(view.status());
  const uint32_t rank = session->rank;
  auto added = std::make_unique<WorkerRank>();
  added->session = session;
  added->wanted = std::move(wanted);
  added->view = *view;
  added->lease = shm::Lease(&view->layout->lease);
  added->wake = shm::Wake(view->inbox.wake());
  added->statistics = shm::Statistics(view->layout->counters);
  peers_.by_rank[rank].SetInbox(view->inbox);
  mapped_.push_back(std::move(session));
  ranks_[rank] = std::move(added);
  if (ranks_.size() == peers_.rank_of_local.size()) {
    BuildEngines(options);
  }
  return {};
}

void WorkerJob::BuildEngines(const engine::EngineOptions& options) {
  for (const auto& [rank, served] : ranks_) {
    served->engine = std::make_unique<engine::RankEngine>(served->view, peers_, options,
                                                          engine::Runner::kWorker);
  }
}

void WorkerJob::RemoveRank(uint32_t rank) {
  ranks_.erase(rank);
  if (ranks_.empty()) {
    mapped_.clear();
  }
}

WorkerRank* WorkerJob::Find(uint32_t rank) {
  const auto found = ranks_.find(rank);
  return found == ranks_.end() ? nullptr : found->second.get();
}

WorkerRank* WorkerJob::FindLocal(uint32_t local_index) {
  return local_index < peers_.rank_of_local.size() ? Find(peers_.rank_of_local[local_index])
                                                   : nullptr;
}

engine::InboxView WorkerJob::Inbox(uint32_t rank) const {
  return rank < peers_.by_rank.size() ? peers_.by_rank[rank].inbox : engine::InboxView{};
}

engine::Reach WorkerMemory::Resolve(uint32_t rank, const shm::Location& where,
                                    uint64_t size_bytes) {
  const WorkerRank* owner = job_.Find(rank);
  if (owner == nullptr) {
    return {};
  }
  if (where.region == 0) {
    if (!owner->session->private_memory_reachable) {
      return {};
    }
    engine::Reach reach;
    reach.pid = owner->session->pid;
    reach.address = where.address;
    return reach;
  }
  const auto found = owner->regions.find(where.region);
  if (found == owner->regions.end()) {
    return {};
  }
  const Region& region = *found->second;
  engine::Reach reach;
  if (!region.IsInside(where.address, size_bytes)) {
    reach.error = ErrorCode::kInvalidBuffer;
  } else if (!region.by_stream) {
    reach.mapped = region.mapping.base() + where.address;
    reach.read_only = region.lent;
  } else if (region.device_memory != nullptr) {
    gpu_ = region.gpu;
    reach.mapped = region.device_memory->base() + where.address;
    reach.by_stream = true;
  }
  return reach;
}

ErrorCode WorkerMemory::Copy(const engine::Reach& destination, const engine::Reach& source,
                             uint64_t size_bytes) {
  if (destination.read_only) [[unlikely]] {
    return ErrorCode::kInvalidBuffer;  // no receive names lent memory
  }
  if (destination.by_stream || source.by_stream) {
    const Status status =
        destination.mapped == nullptr
            ? gpu_->streams.Write(destination.pid, destination.address, source.mapped, size_bytes)
        : source.mapped == nullptr
            ? gpu_->streams.Read(destination.mapped, source.pid, source.address, size_bytes)
            : gpu_->streams.Copy(
                  destination.mapped, source.mapped, size_bytes,
                  {.destination = destination.by_stream, .source = source.by_stream});
    return status.code();
  }
  if (destination.mapped != nullptr && source.mapped != nullptr) {
    shm::CopyWords(destination.mapped, source.mapped, size_bytes);
    return ErrorCode::kOk;
  }
  if (destination.mapped != nullptr) {
    return ReadProcessMemory(source.pid, source.address, destination.mapped, size_bytes);
  }
  if (source.mapped != nullptr) {
    return WriteProcessMemory(destination.pid, destination.address, source.mapped, size_bytes);
  }
  for (uint64_t done = 0; done < size_bytes;) {
    const uint64_t part = std::min<uint64_t>(size_bytes - done, bounce_.size());
    ErrorCode error = ReadProcessMemory(source.pid, source.address + done, bounce_.data(), part);
    if (error == ErrorCode::kOk) {
      error = WriteProcessMemory(destination.pid, destination.address + done, bounce_.data(), part);
    }
    if (error != ErrorCode::kOk) {
      return error;
    }
    done += part;
  }
  return ErrorCode::kOk;
}

}  // namespace ferry::daemon
