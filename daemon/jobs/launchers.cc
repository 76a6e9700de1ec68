#include "daemon/jobs/launchers.h"

#include <utility>
#include <vector>

#include "common/counted.h"
#include "common/hex_text.h"
#include "common/log_event.h"
#include "daemon/jobs/job_programs.h"
#include "daemon/tls/secrets.h"

namespace ferry::daemon {
namespace {

constexpr uid_t kNobody = static_cast<uid_t>(-1);  // no process has this uid

}  // namespace

Launchers::Token Launchers::Admit(uid_t uid) {
  Token token{};
  FillRandom(token);
  by_token_.emplace(HexText(token), Launcher{next_serial_++, uid});
  return token;
}

void Launchers::Dismiss(const std::string& token) {
  const auto launcher = by_token_.extract(token);
  if (launcher.empty()) {
    return;
  }
  std::vector<std::string> orphans;
  for (const auto& [id, job] : registry_.jobs()) {
    if (job->spec.launcher == launcher.mapped().serial && job->series == nullptr) {
      orphans.push_back(id);
    }
  }
  for (const auto& [id, series] : registry_.programs().series()) {
    if (series->spec.launcher == launcher.mapped().serial) {
      orphans.push_back(id);
    }
  }
  for (const std::string& id : orphans) {
    (void)registry_.DestroyJob(id);
  }
}

StatusOr<Launchers::Launcher> Launchers::Find(const std::string& token) const {
  const auto found = by_token_.find(token);
  if (found == by_token_.end()) {
    return Status(ErrorCode::kPermissionDenied,
                  token.empty()
                      ? "the call carries no token (metadata ferry-token): ask for one over the "
                        "attach socket"
                      : "the call's token is no launcher's: its connection to the attach socket "
                        "must stay open");
  }
  return found->second;
}

Status Launchers::CreateJob(const std::string& token, JobSpec spec) {
  const StatusOr<Launcher> launcher = Find(token);
  FERRY_RETURN_IF_ERROR(launcher.status());
  spec.owner = launcher->uid;
  spec.launcher = launcher->serial;
  const std::string id = spec.id;
  const std::string created = "job " + id + ": created by uid " + std::to_string(launcher->uid) +
                              ", " + Counted(spec.node_of_rank.size(), "rank") + " on " +
                              Counted(spec.node_addresses.size(), "node");
  Status status = registry_.CreateJob(std::move(spec));
  if (status.ok()) {
    LogEvent(spdlog::level::info, {.event = "job_begin", .job = id, .uid = launcher->uid}, created);
  } else {
    static RateLimiter limiter(10, 1'000'000'000);  // any user may cause as many as they like
    LogEventLimited(
        limiter, spdlog::level::warn, {.uid = launcher->uid},
        "job of uid " + std::to_string(launcher->uid) + " not created: " + status.message());
  }
  return status;
}

Status Launchers::CheckOwner(const std::string& token, const std::string& job_id) const {
  const StatusOr<Launcher> launcher = Find(token);
  FERRY_RETURN_IF_ERROR(launcher.status());
  const auto job = registry_.jobs().find(job_id);
  const std::shared_ptr<JobSeries> series = registry_.programs().FindLaunch(job_id);
  const uid_t owner = series != nullptr               ? series->spec.owner
                      : job != registry_.jobs().end() ? job->second->spec.owner
                                                      : kNobody;
  if (owner != launcher->uid) {
    return {ErrorCode::kNotFound,
            "uid " + std::to_string(launcher->uid) + " has no job " + job_id + " on this daemon"};
  }
  return {};
}

Status Launchers::DestroyJob(const std::string& token, const std::string& job_id,
                             const std::optional<RankExits>& exits) {
  FERRY_RETURN_IF_ERROR(CheckOwner(token, job_id));
  return registry_.DestroyJob(job_id, exits);
}

StatusOr<bool> Launchers::RankProcessEnded(const std::string& token, const std::string& job_id,
                                           uint32_t rank, const std::string& how) {
  FERRY_RETURN_IF_ERROR(CheckOwner(token, job_id));
  return registry_.RankProcessEnded(job_id, rank, how);
}

}  // namespace ferry::daemon
