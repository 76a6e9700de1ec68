#include "daemon/service_manager.h"

#include <systemd/sd-daemon.h>

#include "common/clock.h"

namespace ferry::daemon {
namespace {

constexpr int kKeepEnvironment = 0;
constexpr uint64_t kNsPerUs = 1'000;

void Tell(const std::string& state, const std::string& status) {
  // Nobody can be told that this failed; a manager that missed READY=1 says so itself.
  (void)sd_notify(kKeepEnvironment, (state + "\nSTATUS=" + status).c_str());
}

}  // namespace

uint64_t ServiceManager::WatchdogNs() {
  uint64_t microseconds = 0;
  return sd_watchdog_enabled(kKeepEnvironment, &microseconds) > 0 ? microseconds * kNsPerUs : 0;
}

void ServiceManager::Ready(const std::string& status) { Tell("READY=1", status); }

void ServiceManager::Reloading() {
  // The time is what Type=notify-reload wants (systemd 253); older ones ignore it.
  Tell("RELOADING=1\nMONOTONIC_USEC=" + std::to_string(MonotonicNs() / kNsPerUs), "reloading");
}

void ServiceManager::Stopping(const std::string& status) { Tell("STOPPING=1", status); }

void ServiceManager::Alive(const std::string& status) { Tell("WATCHDOG=1", status); }

}  // namespace ferry::daemon
