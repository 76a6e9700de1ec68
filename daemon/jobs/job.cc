#include "daemon/jobs/job.h"

#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <set>
#include <utility>

#include "common/counted.h"
#include "common/rank_table.h"
#include "daemon/links/link_messages.h"
#include "daemon/tls/secrets.h"
#include "proto/attach_protocol.h"

namespace ferry::daemon {
namespace {

constexpr size_t kMinSecretBytes = 16;
constexpr size_t kMaxSecretBytes = sizeof(attach::AttachRequest::job_secret);
constexpr size_t kMaxJobIdBytes = sizeof(attach::AttachRequest::job_id) - 1;
constexpr size_t kMaxSeriesIdBytes = kMaxJobIdBytes - 11;  // a mark and ten digits may follow
constexpr size_t kMaxRanksNamed = 8;
constexpr size_t kMaxLabelBytes = 255;  // of what people know it by
constexpr uint32_t kMaxRanksWithoutCheck = 1U << 20;

Status Invalid(const std::string& why) { return {ErrorCode::kInvalidArgument, why}; }

bool IsJobId(const std::string& id) {
  return !id.empty() && id.size() <= kMaxJobIdBytes &&
         std::all_of(id.begin(), id.end(),
                     [](unsigned char c) { return std::isgraph(c) != 0 && c != kProgramMark; });
}

bool IsInProgramBefore(const JobRecord& job, uint32_t rank) {
  if (job.series == nullptr) {
    return false;
  }
  const auto before = job.series->jobs.find(job.program - 1);
  return before != job.series->jobs.end() && before->second->ranks[rank].state != RankState::kEnded;
}

std::string Whereabouts(const JobRecord& job, uint32_t rank) {
  const Node& node = job.nodes[job.spec.node_of_rank[rank]];
  if (IsInProgramBefore(job, rank)) {
    return "still in job " + job.series->IdOf(job.program - 1) + ", the program before";
  }
  if (node.state == NodeState::kSelf) {
    const RankState state = job.ranks[rank].state;
    return std::string(RankStateText(state)) +
           (state == RankState::kAbsent ? ": not started yet, or not at that call" : "");
  }
  std::string text = "node " + std::to_string(job.spec.node_of_rank[rank]) + " at " + node.address;
  if (!node.trouble.ok()) {
    text += ": " + node.trouble.message();
  } else if (node.state == NodeState::kConnecting) {
    text += ": not connected";
  } else if (node.state == NodeState::kDormant) {
    text += ": no news of it yet";
  }
  return text;
}

}  // namespace

std::string RankText(uint32_t rank, const std::string& job_id) {
  return "rank " + std::to_string(rank) + " of job " + job_id;
}

const char* RankStateText(RankState state) {
  switch (state) {
    case RankState::kAbsent:
      return "not attached";
    case RankState::kAttached:
      return "attaching";
    case RankState::kServing:
      return "attached";
    case RankState::kJoined:
      return "joined";
    case RankState::kEnded:
      return "ended";
  }
  return "";
}

bool JobRecord::SharesProcesses() const {
  return std::all_of(own_ranks.begin(), own_ranks.end(), [this](uint32_t rank) {
    return ranks[rank].session == nullptr || ranks[rank].session->shares_processes;
  });
}

bool JobRecord::IsLeaving() const {
  return std::any_of(own_ranks.begin(), own_ranks.end(),
                     [this](uint32_t rank) { return ranks[rank].leaving != nullptr; });
}

bool JobRecord::NewsDelivered() const {
  if (news != nullptr &&
      std::any_of(news->neighbours.begin(), news->neighbours.end(), [this](const auto& entry) {
        const auto& [node, neighbour] = entry;
        const NodeState state = nodes[node].state;
        return (state == NodeState::kUp || state == NodeState::kCut) && !neighbour.is_over &&
               (neighbour.in_flight || neighbour.told < news->facts.size());
      })) {
    return false;
  }
  return std::none_of(nodes.begin(), nodes.end(), [](const Node& node) {
    return (node.state == NodeState::kUp || node.state == NodeState::kCut) &&
           (node.in_flight || node.joined_pending || node.left_pending);
  });
}

std::string JobRecord::MissingRanks() const {
  std::string text;
  size_t missing = 0;
  for (uint32_t rank = 0; rank < size(); ++rank) {
    if (ranks[rank].state == RankState::kJoined || ++missing > kMaxRanksNamed) {
      continue;
    }
    text += (missing > 1 ? ", rank " : "rank ") + std::to_string(rank) + " (" +
            Whereabouts(*this, rank) + ")";
  }
  if (missing > kMaxRanksNamed) {
    text += " and " + std::to_string(missing - kMaxRanksNamed) + " more";
  }
  return text;
}

const char* JobRecord::StateText() const {
  if (aborted) {
    return "aborted";
  }
  if (!failure.ok()) {
    return "failed";
  }
  return complete ? "running" : "joining";
}

ErrorCode PeerError(ErrorCode code) {
  switch (code) {
    case ErrorCode::kAborted:
    case ErrorCode::kWorkerDied:
    case ErrorCode::kDaemonDied:
    case ErrorCode::kNodeUnreachable:
      return code;
    default:
      return ErrorCode::kPeerDied;
  }
}

StatusOr<JobSpec> SpecFrom(const control::CreateJobRequest& request) {
  JobSpec spec;
  if (!request.packed_nodes().empty() && request.node_of_rank_size() != 0) {
    return Invalid("job " + request.job_id() + ": it has both node_of_rank and packed_nodes");
  }
  if (request.packed_nodes().empty()) {
    spec.node_of_rank.assign(request.node_of_rank().begin(), request.node_of_rank().end());
  } else if (request.size() <= kMaxRanksWithoutCheck) {
    StatusOr<std::vector<uint32_t>> nodes = UnpackNodes(request.packed_nodes(), request.size());
    if (!nodes.ok()) {
      return Invalid("job " + request.job_id() + ": it has " + Counted(request.size(), "rank") +
                     ", and " + nodes.status().message());
    }
    spec.node_of_rank = std::move(*nodes);
  }
  const size_t placed = spec.node_of_rank.size();
  if (request.size() != placed || placed > kMaxRanksWithoutCheck) {
    return Invalid("job " + request.job_id() + ": it has " + Counted(request.size(), "rank") +
                   ", but node_of_rank places " + std::to_string(placed));
  }
  spec.id = request.job_id();
  spec.secret = request.secret();
  spec.owner = request.has_uid() ? request.uid() : geteuid();
  spec.tree_radix = request.tree_radix();
  spec.name = Printable(request.name().substr(0, kMaxLabelBytes));
  spec.program = Printable(request.program().substr(0, kMaxLabelBytes));
  spec.slurm_id = Printable(request.slurm_id().substr(0, kMaxLabelBytes));
  spec.node = request.node();
  spec.node_addresses.assign(request.node_addresses().begin(), request.node_addresses().end());
  return spec;
}

Status CheckJobSpec(const JobSpec& spec, uint64_t max_ranks, uint64_t max_local_ranks) {
  if (!IsJobId(spec.id)) {
    return Invalid("a job id must be 1 to " + std::to_string(kMaxJobIdBytes) +
                   " printable characters without spaces or " + kProgramMark);
  }
  const std::string job = "job " + spec.id + ": ";
  if (spec.secret.size() < kMinSecretBytes || spec.secret.size() > kMaxSecretBytes) {
    return Invalid(job + "its secret must be " + std::to_string(kMinSecretBytes) + " to " +
                   std::to_string(kMaxSecretBytes) + " bytes, not " +
                   std::to_string(spec.secret.size()));
  }
  if (spec.programs_follow && spec.launcher == 0) {
    return Invalid(job + "programs can follow each other only while a launcher waits for them");
  }
  if (spec.programs_follow && spec.id.size() > kMaxSeriesIdBytes) {
    return Invalid(job + "where programs follow each other, the id has at most " +
                   std::to_string(kMaxSeriesIdBytes) + " bytes");
  }
  const size_t size = spec.node_of_rank.size();
  if (size == 0) {
    return Invalid(job + "it has no ranks");
  }
  if (size > max_ranks) {
    return {ErrorCode::kLimitExceeded, job + Counted(size, "rank is", "ranks are") +
                                           " more than the " + std::to_string(max_ranks) +
                                           " that max_ranks allows"};
  }
  const size_t nodes = spec.node_addresses.size();
  if (nodes > size) {  // each would cost a link
    return Invalid(job + "it names " + Counted(nodes, "node") + " for " + Counted(size, "rank") +
                   ": at most as many as ranks");
  }
  if (spec.node >= nodes) {
    return Invalid(job + "node " + std::to_string(spec.node) + " is none of its " +
                   Counted(nodes, "node"));
  }
  for (const uint32_t node : spec.node_of_rank) {
    if (node >= nodes) {
      return Invalid(job + "a rank is placed on node " + std::to_string(node) +
                     ", but there are only " + std::to_string(nodes));
    }
  }
  if (const std::set<std::string> distinct(spec.node_addresses.begin(), spec.node_addresses.end());
      distinct.size() != nodes) {
    return Invalid(job + "two of its nodes have the same address");
  }
  std::vector<uint64_t> ranks_of(nodes, 0);
  for (const uint32_t node : spec.node_of_rank) {
    ++ranks_of[node];
  }
  if (const uint64_t local = ranks_of[spec.node]; local > max_local_ranks) {
    return {ErrorCode::kLimitExceeded,
            job + Counted(local, "rank on this node is", "ranks on this node are") +
                " more than the " + std::to_string(max_local_ranks) +
                " that max_local_ranks allows"};
  }
  const auto fullest = std::max_element(ranks_of.begin(), ranks_of.end());
  if (*fullest > shm::kMaxLocalRanks) {
    return {ErrorCode::kLimitExceeded,
            job + Counted(*fullest, "rank is", "ranks are") + " placed on node " +
                std::to_string(fullest - ranks_of.begin()) + ", and a node takes at most " +
                std::to_string(shm::kMaxLocalRanks) + " of a job: use more nodes"};
  }
  return {};
}

std::unique_ptr<JobRecord> MakeJob(JobSpec spec) {
  auto job = std::make_unique<JobRecord>();
  job->plan.job_id = spec.id;
  job->plan.key = DeriveKey(spec.secret, "job key|" + spec.id);
  job->plan.owner = spec.owner;
  job->plan.node = spec.node;
  job->plan.node_of_rank = spec.node_of_rank;
  std::vector<uint32_t> next_index(spec.node_addresses.size(), 0);
  for (const uint32_t node : spec.node_of_rank) {
    job->plan.local_index.push_back(next_index[node]++);
  }
  job->ranks.resize(spec.node_of_rank.size());
  job->ranks_in_state[static_cast<size_t>(RankState::kAbsent)] = job->size();
  for (uint32_t rank = 0; rank < job->size(); ++rank) {
    if (spec.IsLocal(rank)) {
      job->own_ranks.push_back(rank);
    }
  }
  job->nodes.resize(spec.node_addresses.size());
  for (uint32_t node = 0; node < job->nodes.size(); ++node) {
    job->nodes[node].address = spec.node_addresses[node];
    job->nodes[node].state = node == spec.node ? NodeState::kSelf : NodeState::kConnecting;
  }
  if (const JobTree tree(static_cast<uint32_t>(job->nodes.size()), spec.tree_radix, spec.node);
      tree.exists()) {
    job->news = std::make_unique<JobNews>();
    job->news->tree = tree;
  }
  job->spec = std::move(spec);
  return job;
}

}  // namespace ferry::daemon
