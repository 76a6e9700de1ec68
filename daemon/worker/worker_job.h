// The ranks of one job on this node, as the progress worker sees them.
//
// Calling thread: the worker's.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <unordered_map>
#include <vector>

#include "common/status.h"
#include "daemon/plane/data_plane.h"
#include "daemon/session/session.h"
#include "engine/peer_table.h"
#include "engine/rank_engine.h"
#include "engine/session_view.h"
#include "engine/transfer.h"
#include "gpu_backends/api/gpu_source.h"
#include "shm/counters.h"
#include "shm/lease.h"
#include "shm/wake.h"

namespace ferry::daemon {

// A large message inside the node that the worker helps to copy; the receiver is the rank that
// lists it.
struct WorkerCopy {
  uint32_t transfer = 0;  // index in the inbox of the source, own.peer
  uint32_t generation = 0;
  engine::OwnEnd own;  // the receiver's, from its own request slot: no peer can write there
  // True: the rank has matched the message, so it copies by itself while it is in the library, and
  // asks for help again if it leaves too early. False: the worker has matched it, and the rank may
  // not know of it.
  bool is_ranks = false;
};

// The copies of one rank, in turns, at most one for each of its requests.
class WorkerCopies {
 public:
  // Notes the request's copy, in place of an earlier one of that request. A message that the worker
  // has matched stays marked as the worker's.
  void Put(uint32_t request, const WorkerCopy& copy) {
    const auto [at, is_new] = by_request_.try_emplace(request, copy);
    if (is_new) {
      turns_.push_back(request);
      return;
    }
    const bool is_same = at->second.generation == copy.generation;
    const bool is_ranks = copy.is_ranks && (at->second.is_ranks || !is_same);
    at->second = copy;
    at->second.is_ranks = is_ranks;
  }
  // Returns the next copy in turn, and moves it to the end of the line.
  const WorkerCopy& Next() {
    turns_.push_back(turns_.front());
    turns_.pop_front();
    return by_request_.at(turns_.back());
  }
  // Removes the copy that Next returned, since it is over.
  void DropLast() {
    by_request_.erase(turns_.back());
    turns_.pop_back();
  }
  bool empty() const { return turns_.empty(); }
  size_t size() const { return turns_.size(); }

 private:
  std::unordered_map<uint32_t, WorkerCopy> by_request_;
  std::deque<uint32_t> turns_;
};

struct WorkerRank {
  std::shared_ptr<Session> session;
  std::shared_ptr<uint32_t> wanted;  // not 0: a process has asked for the worker
  std::map<uint32_t, std::shared_ptr<const Region>> regions;
  engine::SessionView view;
  std::unique_ptr<engine::RankEngine> engine;  // null until all ranks of the node are there
  shm::Lease lease;
  shm::Wake wake;
  shm::Statistics statistics;
  WorkerCopies copies;
  bool attending = false;  // there may be something to match
  uint32_t refusals = 0;   // how often in a row another process held the lease
};

// Checks that the rank's segments are well formed and fit the job's plan, and returns them.
// kCorrupt, kVersionMismatch.
StatusOr<engine::SessionView> CheckSegments(const Session& session, const JobPlan& plan);

class WorkerJob {
 public:
  explicit WorkerJob(const JobPlan& plan);

  // `wanted` is the word that the rank's Attention sets. kCorrupt, kVersionMismatch.
  Status AddRank(std::shared_ptr<Session> session, std::shared_ptr<uint32_t> wanted,
                 const engine::EngineOptions& options);
  void RemoveRank(uint32_t rank);
  WorkerRank* Find(uint32_t rank);
  WorkerRank* FindLocal(uint32_t local_index);
  // The inbox of a rank of this node; invalid for others.
  engine::InboxView Inbox(uint32_t rank) const;
  const std::map<uint32_t, std::unique_ptr<WorkerRank>>& ranks() const { return ranks_; }

 private:
  void BuildEngines(const engine::EngineOptions& options);

  const JobPlan plan_;
  engine::PeerTable peers_;
  std::map<uint32_t, std::unique_ptr<WorkerRank>> ranks_;  // by rank
  // Keeps the inboxes of ranks that have left mapped, since engines read those of all ranks of the
  // node.
  std::vector<std::shared_ptr<Session>> mapped_;
};

// Gives the worker's engines access to the memory of the job's ranks.
class WorkerMemory final : public engine::MemoryAccess {
 public:
  WorkerMemory(WorkerJob& job, std::vector<std::byte>& bounce) : job_(job), bounce_(bounce) {}
  engine::Reach Resolve(uint32_t rank, const shm::Location& where, uint64_t size_bytes) override;
  ErrorCode Copy(const engine::Reach& destination, const engine::Reach& source,
                 uint64_t size_bytes) override;

 private:
  WorkerJob& job_;
  std::vector<std::byte>& bounce_;       // between two processes' private memory
  std::shared_ptr<gpu::OpenedGpu> gpu_;  // the GPU of the regions that Resolve has found
};

}  // namespace ferry::daemon
