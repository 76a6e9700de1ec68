#include "daemon/admin/profile_report.h"

#include <memory>
#include <optional>
#include <string_view>

#include "common/clock.h"
#include "common/job_name.h"
#include "daemon/jobs/job_history.h"
#include "daemon/jobs/job_profiles.h"
#include "daemon/jobs/job_programs.h"

namespace ferry::daemon {
namespace {

constexpr size_t kPieceBytes = 1 << 20;

// On the control thread. Nothing: the viewer may not see such a job.
std::optional<JobProfiles::Found> FindFor(const JobRegistry& registry, const std::string& job_id,
                                          Viewer viewer) {
  JobProfiles::Found found = registry.profiles().Find(job_id);
  std::optional<uid_t> owner;
  if (!found.ranks.empty()) {
    owner = found.uid;
  } else if (const auto job = registry.jobs().find(TextOf(ReadJobName(job_id)));
             job != registry.jobs().end()) {
    owner = job->second->spec.owner;
  } else if (const auto series = registry.programs().Find(job_id); series != nullptr) {
    owner = series->spec.owner;
  }
  const bool is_seen = owner.has_value() && (!viewer.has_value() || *viewer == *owner);
  return is_seen ? std::optional(std::move(found)) : std::nullopt;
}

using Write = std::function<bool(const control::JobProfilePart&)>;

// `goes_on` becomes false once no more is wanted.
Status SendOne(const RankProfile& profile, uint32_t parts, const Write& write, bool* goes_on) {
  const bool is_daemon = profile.rank == kRankOfDaemon;
  const uint64_t appendix_bytes = is_daemon ? 0 : sizeof(shm::ProfileAppendix);
  control::JobProfilePart part;
  part.set_rank(profile.rank);
  part.set_ended(profile.at_end != nullptr);
  part.set_refusal(profile.refusal);
  part.set_segment_bytes(profile.fd != nullptr ? profile.bytes + appendix_bytes : 0);
  part.set_clock_ns(MonotonicNs());
  *goes_on = write(part);
  const auto take = [&](uint64_t offset, std::string_view piece) {
    part.set_offset(offset);
    part.set_data(piece.data(), piece.size());
    if (is_daemon) {  // which has gone on meanwhile: what is in the piece was there before
      part.set_clock_ns(MonotonicNs());
    }
    return *goes_on = write(part);
  };
  return *goes_on ? ReadProfile(profile, parts, kPieceBytes, take) : Status();
}

}  // namespace

Status SendJobProfile(ControlLoop& loop, const JobRegistry& registry, const std::string& node_name,
                      Viewer viewer, const control::JobProfileRequest& request,
                      const std::function<bool(const control::JobProfilePart&)>& write) {
  const std::optional<JobProfiles::Found> found =
      loop.Run([&] { return FindFor(registry, request.job_id(), viewer); });
  if (!found.has_value()) {
    return {ErrorCode::kNotFound, "there is no job " + request.job_id() + " on this daemon"};
  }
  control::JobProfilePart first;
  first.set_node(node_name);
  first.set_cpu_ns(found->ranks.empty() ? 0 : (CpuTimeUs() - found->cpu_us) * 1000);
  first.set_clock_ns(MonotonicNs());
  if (!write(first) || request.parts() == 0) {
    return {};
  }
  bool goes_on = true;
  for (const auto& rank : found->ranks) {
    if (goes_on && (!request.has_rank() || request.rank() == rank->rank)) {
      FERRY_RETURN_IF_ERROR(SendOne(*rank, request.parts(), write, &goes_on));
    }
  }
  if (goes_on && found->daemon != nullptr && (request.parts() & kDaemonPart) != 0) {
    FERRY_RETURN_IF_ERROR(SendOne(*found->daemon, request.parts(), write, &goes_on));
  }
  return {};
}

}  // namespace ferry::daemon
