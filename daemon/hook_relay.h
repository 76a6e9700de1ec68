// Joins the two planes of a daemon.
//
// Any thread. Attach blocks while a hook is told.
#pragma once

#include <mutex>
#include <string>

#include "common/log.h"
#include "daemon/control/control_server.h"
#include "daemon/plane/data_plane.h"

namespace ferry::daemon {

// Hands what the data plane finds out to the control server, while there is one.
class HookRelay {
 public:
  void Attach(ControlServer* server) {
    const std::lock_guard lock(mutex_);
    server_ = server;
  }
  PlaneHooks Hooks() {
    PlaneHooks hooks;
    hooks.on_violation = [this](const std::string& job_id, uint32_t rank, const std::string& text) {
      Tell([&](ControlServer& to) { to.EndSession(job_id, rank, {ErrorCode::kCorrupt, text}); });
    };
    hooks.on_job_failed = [this](const std::string& job_id, ErrorCode error,
                                 const std::string& text) {
      Tell([&](ControlServer& to) { to.FailJob(job_id, {error, text}); });
    };
    hooks.on_link_down = [this](uint64_t link, ErrorCode error, const std::string& text) {
      Tell([&](ControlServer& to) { to.LoseNode(link, {error, text}); });
    };
    hooks.on_memory_refused = [this](const std::string& text) {
      LogLimited(refusals_, spdlog::level::warn, "{}", text);
    };
    hooks.on_link_wanted = [this](const std::string& job_id, uint32_t rank, uint32_t peer,
                                  shm::LinkMatter matter) {
      // Of what breaks or is returned the rank speaks over the attach socket, where it says which
      // link it means.
      if (matter == shm::LinkMatter::kWanted) {
        Tell([&](ControlServer& to) { to.WantLink(job_id, rank, peer); });
      }
    };
    hooks.on_way_wanted = [this](const std::string& job_id, uint32_t node) {
      Tell([&](ControlServer& to) { to.WantWay(job_id, node); });
    };
    hooks.on_reach = [this](const std::string& job_id, uint32_t rank) {
      Tell([&](ControlServer& to) { to.NoteReach(job_id, rank); });
    };
    hooks.on_import = [this](const std::string& job_id, uint32_t rank, uint32_t region,
                             const Status& status) {
      Tell([&](ControlServer& to) { to.NoteImport(job_id, rank, region, status); });
    };
    return hooks;
  }

 private:
  template <typename Function>
  void Tell(Function function) {
    const std::lock_guard lock(mutex_);
    if (server_ != nullptr) {
      function(*server_);
    }
  }

  std::mutex mutex_;
  ControlServer* server_ = nullptr;
  RateLimiter refusals_{5, 1'000'000'000};
};

}  // namespace ferry::daemon
