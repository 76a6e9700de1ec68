// Log lines of things that happen to a job, a rank or the daemon, for programs that read logs.
//
// With log_format = "json" the line has the fields beside its message; in text they are left out,
// since the message says the same in words. Any thread; blocks as spdlog::log does.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "common/log.h"

namespace ferry {

// Fields of a line of the log beside its text. Empty fields are left out.
struct LogFields {
  std::string_view event = {};  // what happened: "job_end"; programs look for it
  std::string_view job = {};
  std::optional<uint32_t> uid = {};  // the job's owner
  std::optional<uint32_t> rank = {};
  std::string_view more = {};  // further members of the line, as JSON: "\"ranks\":4,\"died\":0"
};

void LogEvent(spdlog::level::level_enum level, const LogFields& fields, std::string_view text);

// As LogEvent, unless `limiter` is exhausted (LogLimited).
void LogEventLimited(RateLimiter& limiter, spdlog::level::level_enum level, const LogFields& fields,
                     std::string_view text);

}  // namespace ferry
