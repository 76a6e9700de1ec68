#include "daemon/admin/quiet_log.h"

#include <set>

namespace ferry::daemon {

uint64_t QuietLog::Note(uint64_t job_serial, uint32_t rank, uint64_t fingerprint, uint64_t now_ns) {
  const auto [entry, is_new] = entries_.try_emplace({job_serial, rank}, Entry{fingerprint, now_ns});
  if (!is_new && entry->second.fingerprint != fingerprint) {
    entry->second = {fingerprint, now_ns};
  }
  return now_ns - entry->second.since_ns;
}

void QuietLog::Sweep(const JobRegistry& registry) {
  std::set<uint64_t> serials;
  for (const auto& [id, job] : registry.jobs()) {
    serials.insert(job->serial);
  }
  std::erase_if(entries_, [&](const auto& entry) { return !serials.contains(entry.first.first); });
}

}  // namespace ferry::daemon
