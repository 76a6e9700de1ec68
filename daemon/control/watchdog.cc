#include "daemon/control/watchdog.h"

#include <utility>

#include "common/log.h"

namespace ferry::daemon {

void Watchdog::Start(std::chrono::nanoseconds interval, std::function<void()> alive) {
  interval_ = interval;
  alive_ = std::move(alive);
  Ask();
}

void Watchdog::Ask() {
  if (answered_->load(std::memory_order_relaxed) == asked_) {  // else the last letter still lies
    data_plane_.Probe([answered = answered_, number = ++asked_] {
      answered->store(number, std::memory_order_relaxed);
    });
  }
  probe_.Ask();
  timer_.expires_after(interval_);
  timer_.async_wait([this](const boost::system::error_code& error) {
    if (!error) {
      Tick();
    }
  });
}

void Watchdog::Tick() {
  const bool thread_turns = answered_->load(std::memory_order_relaxed) == asked_;
  if (thread_turns && probe_.answered()) {
    reported_ = false;
    alive_();
  } else if (!std::exchange(reported_, true)) {
    spdlog::error("{} has not answered for {} ms; the watchdog is not fed",
                  thread_turns ? socket_ : "the progress thread",
                  std::chrono::duration_cast<std::chrono::milliseconds>(interval_).count());
  }
  Ask();
}

}  // namespace ferry::daemon
