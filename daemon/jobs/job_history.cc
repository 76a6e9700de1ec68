#include "daemon/jobs/job_history.h"

#include <sys/resource.h>

#include <algorithm>
#include <chrono>

#include "common/log_event.h"
#include "daemon/jobs/job.h"
#include "shm/call_record.h"

namespace ferry::daemon {

JobHistory JobHistory::Begin() {
  JobHistory history;
  history.began_ns = RealtimeNs();
  history.daemon_cpu_us = CpuTimeUs();
  return history;
}

uint64_t CpuTimeUs() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return (static_cast<uint64_t>(usage.ru_utime.tv_sec) + usage.ru_stime.tv_sec) * 1'000'000 +
         static_cast<uint64_t>(usage.ru_utime.tv_usec) + usage.ru_stime.tv_usec;
}

uint64_t RealtimeNs() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(now).count());
}

void NoteDeath(JobRecord& job, uint32_t rank) {
  const Status& end = job.ranks[rank].end;
  ++job.history.died;
  if (job.history.first_death.ok()) {
    job.history.first_death = end;
  }
  // Any user may have as many ranks die as he likes.
  static RateLimiter limiter(10, 1'000'000'000);
  const std::string name = RankText(rank, job.spec.id);
  LogEventLimited(
      limiter, spdlog::level::warn,
      {.event = "rank_end", .job = job.spec.id, .uid = job.spec.owner, .rank = rank},
      end.message().starts_with(name) ? end.message() : name + " has ended: " + end.message());
}

void NoteHistograms(JobRecord& job, const Session& session, shm::Histograms* all) {
  shm::Histograms ended;
  ended.Add(shm::HistogramsOf(*session.layout()));
  const uint64_t now_ns = MonotonicNs();
  for (const shm::CallView& call :
       shm::ReadCalls(session.layout()->calls, session.job_size).calls) {
    if (call.begin_ns != 0 && call.begin_ns < now_ns) {  // as the rank says
      ended.AddWait(call.name, now_ns - std::max(call.begin_ns, job.created_ns));
    }
  }
  job.history.histograms.Add(ended);
  all->Add(ended);
}

}  // namespace ferry::daemon
