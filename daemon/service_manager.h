// Tells the service manager that started ferryd how it is doing: the protocol of sd_notify(3).
//
// Which one that is stands in the environment (NOTIFY_SOCKET); without one nothing happens. Any
// thread. A call is one small datagram; it blocks only while the manager's queue is full.
#pragma once

#include <cstdint>
#include <string>

namespace ferry::daemon {

class ServiceManager {
 public:
  // How long it waits for a sign of life before it ends this process; 0 when it does not watch.
  // Signs should come twice as often.
  static uint64_t WatchdogNs();

  // ferryd serves; also the end of Reloading. `status` is a line for `systemctl status`.
  static void Ready(const std::string& status);
  static void Reloading();
  static void Stopping(const std::string& status);
  // The sign of life.
  static void Alive(const std::string& status);
};

}  // namespace ferry::daemon
