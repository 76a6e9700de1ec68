// Opens libferry_control.so, which talks gRPC to the daemon, with local symbols (client/control).
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <future>
#include <span>
#include <string>
#include <vector>

#include "client/control/control_api.h"
#include "common/status.h"

namespace ferry::client {

// A connection to the daemon's Client service. Calling thread: any. Calls block.
class ControlLibrary {
 public:
  ControlLibrary() = default;
  ~ControlLibrary();
  ControlLibrary(const ControlLibrary&) = delete;
  ControlLibrary& operator=(const ControlLibrary&) = delete;

  // Begins to load the library (gRPC and some sixty libraries that it needs: milliseconds) in a
  // thread of its own, while the caller does other things. Connect waits for it.
  void LoadAhead();
  // Loads the library from beside libferry and connects. `token` is AttachReply's. kNoDaemon, and
  // errors as of ConnectToDaemon.
  Status Connect(const std::string& run_directory, const uint8_t* token, size_t token_bytes,
                 uint32_t timeout_ms, const std::string& daemon_user = "");
  struct Membership {
    uint32_t node = 0;
    uint32_t node_count = 0;
    std::vector<ferry_control_peer> peers;  // by rank
  };
  // Waits until every rank has joined. Calls `waits` meanwhile, after `first_ms` or so and again
  // and again, with the ranks that are missing, or with "" if another rank of the job is told.
  using Waits = std::function<void(const std::string& missing)>;
  StatusOr<Membership> Join(uint32_t size, uint64_t first_ms, const Waits& waits);
  Status RegisterRegion(const ferry_control_region& region);
  Status DeregisterRegion(uint32_t region, uint64_t size_bytes);
  // Persistent requests to be matched (control_api.h): all sends or all receives.
  Status OfferMatches(bool sends, std::span<const ferry_control_offer> offers);
  Status WithdrawMatch(bool send, const ferry_control_match_key& key, uint64_t rounds);
  Status Detach();
  // A sentence that says what this rank waits for, and why.
  StatusOr<std::string> Why();
  Status Abort(int exit_code, const char* reason);
  // The daemon hangs: calls that begin from now on fail at once, with kDaemonDied.
  void GiveUp() { is_given_up_.store(true, std::memory_order_relaxed); }

  // With a launcher's token (AttachConnection::IdentifyUser), only these two calls are allowed. The
  // first returns the host:port at which other daemons reach this one; the second creates the job,
  // which ends with the launcher's connection.
  StatusOr<std::string> ControlAddress();
  Status CreateJob(const ferry_control_job& job);

 private:
  uint32_t PinningMs(uint64_t size_bytes) const;
  Status CheckAnswers() const;

  std::future<StatusOr<const ferry_control_api*>> loading_;
  const ferry_control_api* api_ = nullptr;
  ferry_control* control_ = nullptr;
  uint32_t timeout_ms_ = 0;
  std::atomic<bool> is_given_up_ = false;
};

}  // namespace ferry::client
