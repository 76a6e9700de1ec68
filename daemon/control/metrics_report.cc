#include "daemon/control/metrics_report.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "common/unique_fd.h"
#include "daemon/control/rank_view.h"

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

uint64_t OpenFiles() {
  uint64_t count = 0;
  if (DIR* directory = opendir("/proc/self/fd"); directory != nullptr) {
    while (const dirent* entry = readdir(directory)) {
      count += entry->d_name[0] != '.' ? 1 : 0;
    }
    closedir(directory);
    --count;  // the directory's own
  }
  return count;
}

double Seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
}

}  // namespace

void FillMetrics(const JobRegistry& registry, MetricsSample* sample) {
  const JobRegistry::Totals& totals = registry.totals();
  sample->draining = registry.draining();
  sample->jobs_created = totals.jobs_created;
  sample->ranks_attached = totals.ranks_attached;
  sample->ranks_died = totals.ranks_died;
  sample->tally = totals.ended;
  for (const auto& [id, job] : registry.jobs()) {
    JobSample& entry = sample->jobs.emplace_back();
    entry.id = id;
    for (const Rank& rank : job->ranks) {
      if (rank.session != nullptr) {
        AddRank(*rank.session, &entry);
      }
    }
    sample->tally.Add(entry.tally);
    entry.tally.Add(job->ended);
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
  process.open_files = OpenFiles();
  rlimit files{};
  getrlimit(RLIMIT_NOFILE, &files);
  process.max_files = files.rlim_cur;
  return process;
}

}  // namespace ferry::daemon
