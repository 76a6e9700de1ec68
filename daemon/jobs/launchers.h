// The launchers that start jobs here: one per connection to the attach socket that asked to be one
// (kUser), known by the token it was given. Its jobs belong to the uid of that connection and end
// with it, so that a launcher that was killed leaves none behind.
//
// Thread: everything on the control thread; no locks.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>

#include "common/rank_exits.h"
#include "common/status.h"
#include "daemon/jobs/job_registry.h"
#include "proto/attach_protocol.h"

namespace ferry::daemon {

class Launchers {
 public:
  using Token = std::array<uint8_t, attach::kTokenBytes>;
  struct Launcher {
    uint64_t serial = 0;  // never 0
    uid_t uid = 0;
  };

  // `registry` must outlive it.
  explicit Launchers(JobRegistry& registry) : registry_(registry) {}

  // Gives a token to a new launcher.
  Token Admit(uid_t uid);
  // Destroys the jobs of a launcher that has hung up. `token` as hexadecimal text, here and below.
  void Dismiss(const std::string& token);
  // kPermissionDenied when no launcher has that token.
  StatusOr<Launcher> Find(const std::string& token) const;

  // As JobRegistry::CreateJob, for the launcher's uid and as long as it lives. kPermissionDenied.
  Status CreateJob(const std::string& token, JobSpec spec);
  // As JobRegistry::DestroyJob. kNotFound: no such job, or none of that user's. kPermissionDenied.
  Status DestroyJob(const std::string& token, const std::string& job_id,
                    const std::optional<RankExits>& exits = {});
  // As JobRegistry::RankProcessEnded, for a job of the launcher. kPermissionDenied.
  StatusOr<bool> RankProcessEnded(const std::string& token, const std::string& job_id,
                                  uint32_t rank, const std::string& how);

 private:
  Status CheckOwner(const std::string& token, const std::string& job_id) const;

  JobRegistry& registry_;
  uint64_t next_serial_ = 1;
  std::unordered_map<std::string, Launcher> by_token_;
};

}  // namespace ferry::daemon
