// Logging for the daemon and the tools, on spdlog: set-up, and a limit on repeated messages. Never
// on the hot path, and never in libferry, which does not link spdlog.
//
// After SetUpLog, log with spdlog::info(...) and its siblings, or with LogLimited where a peer's
// behaviour could make the same message appear many times.
#pragma once

#include <spdlog/spdlog.h>

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "common/clock.h"
#include "common/status.h"

// Every file that logs would compile the whole formatter anew; log.cc does it once.
extern template void fmt::detail::vformat_to<char>(fmt::detail::buffer<char>&, fmt::string_view,
                                                   fmt::format_args, fmt::detail::locale_ref);

namespace ferry {

struct LogSettings {
  std::string level = "info";   // trace, debug, info, warn, error or off
  std::string format = "text";  // text, or json: one object per line
  std::string file;             // appended to; empty means standard error
};

// Sets up the process's log; a second call replaces the first. `name` stands in every line. Each
// line is written at once, so none is lost when the process dies. Blocks on opening the file. Call
// it before other threads log. Errors: kConfiguration, when the file cannot be opened or a setting
// is not one of those above; the log is then as before.
Status SetUpLog(const std::string& name, const LogSettings& settings);

// Lets `burst` events pass in each interval and counts the others. Any thread; blocks no longer
// than another Admit. Not copied: declare it beside what it limits.
class RateLimiter {
 public:
  RateLimiter(uint32_t burst, uint64_t interval_ns) : burst_(burst), interval_ns_(interval_ns) {}

  // Nothing if the event must be dropped; else how many were dropped since the last that passed.
  std::optional<uint64_t> Admit(uint64_t now_ns);

 private:
  const uint32_t burst_;
  const uint64_t interval_ns_;
  std::mutex mutex_;
  uint64_t interval_start_ns_ = 0;
  uint32_t passed_ = 0;
  uint64_t dropped_ = 0;
};

// Logs unless `limiter` is exhausted; says how many messages it dropped before this one.
template <typename... Args>
void LogLimited(RateLimiter& limiter, spdlog::level::level_enum level,
                fmt::format_string<Args...> format, Args&&... args) {
  if (!spdlog::should_log(level)) {
    return;
  }
  if (const std::optional<uint64_t> dropped = limiter.Admit(MonotonicNs())) {
    const std::string text = fmt::format(format, std::forward<Args>(args)...);
    if (*dropped == 0) {
      spdlog::log(level, "{}", text);
    } else {
      spdlog::log(level, "{} ({} similar messages suppressed)", text, *dropped);
    }
  }
}

}  // namespace ferry
