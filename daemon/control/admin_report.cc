#include "daemon/control/admin_report.h"

#include <algorithm>
#include <span>

#include "shm/atomic.h"
#include "shm/counters.h"
#include "shm/layout/match_layout.h"
#include "shm/layout/request_layout.h"

namespace ferry::daemon {
namespace {

constexpr int kMaxReasons = 1000;

using shm::LoadRelaxed;

bool HasSegments(const Rank& rank) {
  return rank.session != nullptr && rank.session->session_map.valid();
}

uint64_t RegionBytes(const Session& session, uint32_t* count) {
  uint64_t bytes = 0;
  for (const auto& [id, region] : session.Regions()) {
    bytes += region->mapping.size_bytes();
    ++*count;
  }
  return bytes;
}

std::span<const shm::RequestLayout> UsedRequests(const Session& session) {
  const auto* requests = reinterpret_cast<const shm::RequestLayout*>(session.session_map.base() +
                                                                     shm::SessionRequestsOffset());
  // Slots from `request_fresh` on were never used: reading them would only make their pages.
  return {requests, std::min(LoadRelaxed(session.layout()->request_fresh), session.request_limit)};
}

// The step that an unfinished request has reached; null for one that waits for nothing.
const char* StepText(const shm::RequestLayout& request) {
  switch (static_cast<shm::RequestState>(LoadRelaxed(request.state))) {
    case shm::RequestState::kQueued:
      return "waits for space or credit at the receiver";
    case shm::RequestState::kPosted:
      return "waits for a matching message";
    case shm::RequestState::kLanded:
      return "matched; the rank has to copy the data out of the lane";
    case shm::RequestState::kTransferring:
      return "data is being copied between the ranks, or the receiver has not matched it yet";
    case shm::RequestState::kRemoteWait:
      return "waits for the daemon and the other node";
    case shm::RequestState::kFree:
    case shm::RequestState::kInactive:
    case shm::RequestState::kComplete:
      return nullptr;
  }
  return nullptr;
}

uint32_t Unfinished(const Session& session) {
  const auto used = UsedRequests(session);
  return static_cast<uint32_t>(std::count_if(
      used.begin(), used.end(), [](const auto& request) { return StepText(request) != nullptr; }));
}

void ReportSession(const Job& job, const Rank& rank, control::SessionStatus* status) {
  const Session& session = *rank.session;
  status->set_job_id(job.spec.id);
  status->set_rank(session.rank);
  status->set_pid(static_cast<uint32_t>(session.pid));
  status->set_uid(session.uid);
  status->set_state(RankStateText(rank.state));
  uint32_t regions = 0;
  status->set_region_bytes(RegionBytes(session, &regions));
  status->set_regions(regions);
  if (!HasSegments(rank)) {
    return;
  }
  const shm::SessionLayout& layout = *session.layout();
  const shm::Statistics statistics(session.layout()->counters);
  status->set_messages_sent(statistics.Read(shm::Statistic::kMessagesSent));
  status->set_messages_received(statistics.Read(shm::Statistic::kMessagesReceived));
  status->set_bytes_sent(statistics.Read(shm::Statistic::kBytesSent));
  status->set_bytes_received(statistics.Read(shm::Statistic::kBytesReceived));
  status->set_requests(Unfinished(session));
  status->set_queued(LoadRelaxed(layout.queued_sends));
  const auto& table = *reinterpret_cast<const shm::MatchTableLayout*>(
      session.session_map.base() + shm::SessionMatchOffset(session.request_limit));
  status->set_posted(LoadRelaxed(table.posted_count));
  status->set_unexpected(LoadRelaxed(table.unexpected_count));
}

void AddCounter(const std::string& scope, const char* name, const char* unit, uint64_t value,
                const char* help, control::CountersReply* reply) {
  control::CounterValue* counter = reply->add_counters();
  counter->set_scope(scope);
  counter->set_name(name);
  counter->set_unit(unit);
  counter->set_value(value);
  counter->set_help(help);
}

void ReportRequest(const shm::RequestLayout& request, control::WhyReply* reply) {
  const char* step = StepText(request);
  if (step == nullptr) {
    return;
  }
  control::WaitReason* reason = reply->add_reasons();
  const bool send = LoadRelaxed(request.kind) == static_cast<uint32_t>(shm::RequestKind::kSend);
  reason->set_operation(send ? "send" : "receive");
  reason->set_peer(LoadRelaxed(request.peer));
  reason->set_tag(LoadRelaxed(request.tag));
  reason->set_size_bytes(LoadRelaxed(request.size_bytes));
  reason->set_step(step);
}

}  // namespace

void ReportStatus(const JobRegistry& registry, std::optional<uid_t> uid,
                  control::StatusReply* reply) {
  reply->set_state(registry.draining() ? "draining" : "serving");
  uint32_t sessions = 0;
  uint32_t regions = 0;
  uint64_t region_bytes = 0;
  for (const auto& [id, job] : registry.jobs()) {
    if (uid.has_value() && job->spec.owner != *uid) {
      continue;
    }
    uint32_t joined = 0;
    uint32_t local = 0;
    for (uint32_t index = 0; index < job->size(); ++index) {
      const Rank& rank = job->ranks[index];
      joined += rank.state == RankState::kJoined ? 1 : 0;
      local += job->IsLocal(index) ? 1 : 0;
      if (rank.session != nullptr) {
        ++sessions;
        region_bytes += RegionBytes(*rank.session, &regions);
      }
    }
    control::JobStatus* status = reply->add_jobs();
    status->set_job_id(id);
    status->set_size(job->size());
    status->set_joined(joined);
    status->set_local(local);
    status->set_state(job->StateText());
    status->set_uid(job->spec.owner);
  }
  reply->set_sessions(sessions);
  reply->set_regions(regions);
  reply->set_region_bytes(region_bytes);
}

void ReportSessions(const JobRegistry& registry, control::SessionsReply* reply) {
  for (const auto& [id, job] : registry.jobs()) {
    for (const Rank& rank : job->ranks) {
      if (rank.session != nullptr) {
        ReportSession(*job, rank, reply->add_sessions());
      }
    }
  }
}

Status ReportCounters(const JobRegistry& registry, const control::CountersRequest& request,
                      control::CountersReply* reply) {
  bool found = false;
  for (const auto& [id, job] : registry.jobs()) {
    for (uint32_t index = 0; index < job->size(); ++index) {
      const Rank& rank = job->ranks[index];
      if ((!request.job_id().empty() && request.job_id() != id) || !HasSegments(rank) ||
          (request.rank() >= 0 && static_cast<uint32_t>(request.rank()) != index)) {
        continue;
      }
      found = true;
      const std::string scope = "job " + id + " rank " + std::to_string(index);
      const shm::Statistics statistics(rank.session->layout()->counters);
      for (const shm::StatisticLabel& label : shm::StatisticLabels()) {
        AddCounter(scope, label.name, label.unit, statistics.Read(label.id), label.help, reply);
      }
    }
  }
  if (!found && (!request.job_id().empty() || request.rank() >= 0)) {
    return {ErrorCode::kNotFound, "no such rank is attached to this daemon"};
  }
  return {};
}

Status ReportWhy(const JobRegistry& registry, const control::WhyRequest& request,
                 control::WhyReply* reply) {
  const auto job = registry.jobs().find(request.job_id());
  if (job == registry.jobs().end()) {
    return {ErrorCode::kNotFound, "there is no job " + request.job_id() + " on this daemon"};
  }
  if (request.rank() >= job->second->size() || !HasSegments(job->second->ranks[request.rank()])) {
    return {ErrorCode::kNotFound, "rank " + std::to_string(request.rank()) + " of job " +
                                      request.job_id() + " is not attached to this daemon"};
  }
  const Session& session = *job->second->ranks[request.rank()].session;
  for (const shm::RequestLayout& slot : UsedRequests(session)) {
    if (reply->reasons_size() >= kMaxReasons) {
      break;
    }
    ReportRequest(slot, reply);
  }
  return {};
}

void ReportNic(const NicStatistics& statistics, control::NicStatus* nic) {
  nic->set_provider(statistics.provider);
  nic->set_fabric(statistics.fabric);
  nic->set_domain(statistics.domain);
  nic->set_address(statistics.address);
  nic->set_version(statistics.version);
  nic->set_messages_sent(statistics.messages_sent);
  nic->set_messages_received(statistics.messages_received);
  nic->set_bytes_sent(statistics.bytes_sent);
  nic->set_bytes_received(statistics.bytes_received);
  nic->set_reads(statistics.reads);
  nic->set_writes(statistics.writes);
  nic->set_errors(statistics.errors);
  nic->set_outstanding(statistics.outstanding);
}

}  // namespace ferry::daemon
