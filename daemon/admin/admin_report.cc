#include "daemon/admin/admin_report.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>

#include "common/clock.h"
#include "common/open_files.h"
#include "common/unique_fd.h"
#include "daemon/admin/why_steps.h"
#include "daemon/jobs/job_programs.h"
#include "daemon/session/rank_view.h"
#include "shm/atomic.h"
#include "shm/counters.h"

namespace ferry::daemon {
namespace {

void AddRank(const Session& session, JobSample* job) {
  LoadSample& load = job->load;
  ++load.sessions;
  for (const auto& [id, region] : session.Regions()) {
    ++load.regions;
    load.region_bytes += region->size_bytes();
  }
  if (!session.session_map.valid() || !session.inbox_map.valid()) {
    return;
  }
  job->tally.Add(shm::Statistics(session.layout()->counters));
  job->histograms.Add(shm::HistogramsOf(*session.layout()));
  const QueueView queues = ReadQueues(session);
  load.unfinished_requests += CountUnfinished(session);
  load.posted_receives += queues.posted;
  load.unexpected_messages += queues.unexpected;
  load.queued_sends += queues.queued_sends;
  load.credits_out += CreditsOut(session);
}

uint64_t ResidentBytes() {
  const UniqueFd file(open("/proc/self/statm", O_RDONLY | O_CLOEXEC));
  char text[128] = {};
  const ssize_t size = file.valid() ? read(file.get(), text, sizeof(text) - 1) : 0;
  const char* resident = size > 0 ? strchr(text, ' ') : nullptr;  // the second number, in pages
  return resident == nullptr
             ? 0
             : strtoull(resident, nullptr, 10) * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

double Seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
}

using shm::LoadRelaxed;

bool HasSegments(const Rank& rank) {
  return rank.session != nullptr && rank.session->session_map.valid() &&
         rank.session->inbox_map.valid();
}

uint64_t RegionBytes(const Session& session, uint32_t* count) {
  uint64_t bytes = 0;
  for (const auto& [id, region] : session.Regions()) {
    bytes += region->size_bytes();
    ++*count;
  }
  return bytes;
}

void ReportSession(const JobRecord& job, const Rank& rank, control::SessionStatus* status) {
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
  const shm::Statistics statistics(session.layout()->counters);
  status->set_messages_sent(statistics.Read(shm::Statistic::kMessagesSent));
  status->set_messages_received(statistics.Read(shm::Statistic::kMessagesReceived));
  status->set_bytes_sent(statistics.Read(shm::Statistic::kBytesSent));
  status->set_bytes_received(statistics.Read(shm::Statistic::kBytesReceived));
  status->set_requests(CountUnfinished(session));
  status->set_credits_out(CreditsOut(session));
  const int32_t poison = LoadRelaxed(session.inbox()->wake.poison);
  status->set_poison(poison == 0 ? "" : ErrorCodeText(static_cast<ErrorCode>(poison)));
  const QueueView queues = ReadQueues(session);
  status->set_queued(queues.queued_sends);
  status->set_posted(queues.posted);
  status->set_unexpected(queues.unexpected);
  if (rank.state != RankState::kEnded) {
    const uint64_t now_ns = MonotonicNs();
    for (const shm::CallView& call :
         shm::ReadCalls(session.layout()->calls, session.job_size).calls) {
      FillCall(call, now_ns, status->add_calls());
    }
  }
}

void ReportPlace(const PlaceReport& place, control::SessionStatus* status) {
  status->set_cpus(place.cpus);
  status->set_nic(place.nic);
  status->set_nic_distance(place.nic_distance);
}

// `unfinished`: requests by user.
void ReportUsers(const QuotaLedger& quotas, std::optional<uid_t> only,
                 const std::map<uid_t, uint64_t>& unfinished, control::StatusReply* reply) {
  std::map<uid_t, QuotaAmounts> users = quotas.Used();
  if (only.has_value()) {
    users = {{*only, users[*only]}};
  }
  for (const auto& [uid, used] : users) {
    const QuotaAmounts limits = quotas.LimitsOf(uid);
    control::UserStatus* user = reply->add_users();
    user->set_uid(uid);
    user->set_sessions(used.sessions);
    user->set_sessions_limit(limits.sessions);
    user->set_regions(used.regions);
    user->set_regions_limit(limits.regions);
    user->set_pinned_bytes(used.pinned_bytes);
    user->set_pinned_bytes_limit(limits.pinned_bytes);
    user->set_jobs(used.jobs);
    user->set_jobs_limit(limits.jobs);
    const auto waiting = unfinished.find(uid);
    user->set_requests(waiting == unfinished.end() ? 0 : waiting->second);
    user->set_requests_room(used.requests);
    user->set_requests_limit(limits.requests);
    user->set_links(used.links);
    user->set_links_limit(limits.links);
    user->set_nodes(used.nodes);
    user->set_nodes_limit(limits.nodes);
  }
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

}  // namespace

// ---- MetricsReport ----

void FillMetrics(const JobRegistry& registry, MetricsSample* sample) {
  const JobRegistry::Totals& totals = registry.totals();
  sample->draining = registry.draining();
  sample->jobs_created = totals.jobs_created;
  sample->ranks_attached = totals.ranks_attached;
  sample->ranks_died = totals.ranks_died;
  sample->tally = totals.ended;
  sample->histograms = totals.ended_histograms;
  const uint64_t now_ns = MonotonicNs();
  sample->rank_seconds = static_cast<double>(totals.rank_time.At(now_ns)) / 1e9;
  for (const auto& [id, job] : registry.jobs()) {
    JobSample& entry = sample->jobs.emplace_back();
    entry.id = id;
    entry.uid = job->spec.owner;
    entry.name = job->spec.name;
    entry.program = job->spec.program;
    entry.slurm_id = job->spec.slurm_id;
    entry.load.direct_links = job->links == nullptr ? 0 : job->links->book.links();
    for (const Rank& rank : job->ranks) {
      if (rank.session != nullptr) {
        AddRank(*rank.session, &entry);
      }
    }
    sample->tally.Add(entry.tally);
    entry.tally.Add(job->ended);
    sample->histograms.Add(entry.histograms);
    entry.histograms.Add(job->history.histograms);
    entry.rank_seconds = static_cast<double>(job->history.rank_time.At(now_ns)) / 1e9;
  }
}

void FillPeers(const std::vector<control::PeerStatus>& peers, MetricsSample* sample) {
  for (const control::PeerStatus& peer : peers) {
    // One that has not answered yet has no name.
    sample->peers.push_back({peer.name().empty() ? peer.control_address() : peer.name(),
                             peer.state() == "up",
                             static_cast<double>(peer.last_heard_ms()) / 1000});
  }
}

ProcessSample ReadProcess() {
  ProcessSample process;
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  process.cpu_seconds = Seconds(usage.ru_utime) + Seconds(usage.ru_stime);
  process.resident_bytes = ResidentBytes();
  const OpenFiles files = CountOpenFiles();
  process.open_files = files.open;
  process.max_files = files.limit;
  return process;
}

// ---- AdminReport ----

void ReportStatus(const JobRegistry& registry, std::optional<uid_t> uid,
                  control::StatusReply* reply) {
  reply->set_state(registry.draining() ? "draining" : "serving");
  uint32_t sessions = 0;
  uint32_t regions = 0;
  uint64_t region_bytes = 0;
  std::map<uid_t, uint64_t> unfinished;
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
      if (HasSegments(rank)) {
        unfinished[rank.session->uid] += CountUnfinished(*rank.session);
      }
    }
    control::JobStatus* status = reply->add_jobs();
    status->set_job_id(id);
    status->set_size(job->size());
    status->set_joined(joined);
    status->set_local(local);
    status->set_state(job->StateText());
    status->set_uid(job->spec.owner);
    status->set_name(job->spec.name);
    status->set_program(job->spec.program);
    status->set_slurm_id(job->spec.slurm_id);
    status->set_age_ms((MonotonicNs() - job->created_ns) / 1'000'000);
  }
  ReportUsers(registry.quotas(), uid, unfinished, reply);
  reply->set_sessions(sessions);
  reply->set_regions(regions);
  reply->set_region_bytes(region_bytes);
}

void ReportSessions(const JobRegistry& registry, std::optional<uid_t> uid,
                    const DataPlane& data_plane, control::SessionsReply* reply) {
  for (const auto& [id, job] : registry.jobs()) {
    if (uid.has_value() && job->spec.owner != *uid) {
      continue;
    }
    for (const Rank& rank : job->ranks) {
      if (rank.session != nullptr) {
        control::SessionStatus* session = reply->add_sessions();
        ReportSession(*job, rank, session);
        ReportPlace(data_plane.PlaceOf(*rank.session), session);
      }
    }
  }
}

Status ReportCounters(const JobRegistry& registry, std::optional<uid_t> uid,
                      const control::CountersRequest& request, control::CountersReply* reply) {
  bool found = false;
  for (const auto& [id, job] : registry.jobs()) {
    if (uid.has_value() && job->spec.owner != *uid) {
      continue;
    }
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

RunningWork CountRunning(const JobRegistry& registry) {
  RunningWork work{registry.local_ranks(),
                   static_cast<uint32_t>(registry.programs().series().size())};
  for (const auto& [id, job] : registry.jobs()) {
    if (job->series != nullptr) {
      continue;  // its programs count as one job
    }
    const bool has_ranks = std::any_of(job->ranks.begin(), job->ranks.end(),
                                       [](const Rank& rank) { return rank.session != nullptr; });
    work.jobs += job->spec.launcher != 0 || has_ranks ? 1 : 0;
  }
  return work;
}

void ReportProcess(control::StatusReply* reply) {
  const ProcessSample process = ReadProcess();
  reply->set_cpu_time_us(static_cast<uint64_t>(process.cpu_seconds * 1e6));
  reply->set_resident_bytes(process.resident_bytes);
}

void ReportRegistrations(const RegistrationStatistics& statistics,
                         control::RegistrationStatus* status) {
  status->set_entries(statistics.entries);
  status->set_entries_limit(statistics.entries_limit);
  status->set_bytes(statistics.bytes);
  status->set_bytes_limit(statistics.bytes_limit);
  status->set_waiting(statistics.waiting);
  status->set_hits(statistics.hits);
  status->set_misses(statistics.misses);
  status->set_evictions(statistics.evictions);
  status->set_stale(statistics.stale);
  status->set_refusals(statistics.refusals);
  status->set_device_refusals(statistics.device_refusals);
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
  nic->set_staging_blocks(statistics.staging_blocks);
  nic->set_staging_busy(statistics.staging_busy);
  nic->set_staging_waits(statistics.staging_waits);
  nic->set_staging_most_blocks(statistics.staging_most_blocks);
  nic->set_staging_grown(statistics.staging_grown);
  nic->set_staging_shrunk(statistics.staging_shrunk);
  nic->set_deferred_entries(statistics.deferred_entries);
  nic->set_deferred_busy(statistics.deferred_busy);
  nic->set_deferred_operations(statistics.deferred_operations);
  nic->set_deferred_overflows(statistics.deferred_overflows);
  nic->set_deferred_counters(statistics.deferred_counters);
  nic->set_deferred_rings(statistics.deferred_rings);
  nic->set_device_memory(statistics.device_memory);
  nic->set_device_direct(statistics.device_direct);
  nic->set_device_staged(statistics.device_staged);
  nic->set_device_refusal(statistics.device_refusal);
  nic->set_pci(statistics.pci);
  nic->set_numa_node(statistics.numa_node);
  nic->set_cpus(statistics.cpus);
  nic->set_progress_cpus(statistics.progress_cpus);
  nic->set_staging_node(statistics.staging_node);
}

}  // namespace ferry::daemon
