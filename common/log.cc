#include "common/log.h"

#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/stdout_sinks.h>

#include <array>
#include <memory>
#include <string_view>

#include "common/log_event.h"

template void fmt::detail::vformat_to<char>(fmt::detail::buffer<char>&, fmt::string_view,
                                            fmt::format_args, fmt::detail::locale_ref);

namespace ferry {
namespace {

using spdlog::level::level_enum;

constexpr std::array<std::pair<std::string_view, level_enum>, 6> kLevels = {{
    {"trace", level_enum::trace},
    {"debug", level_enum::debug},
    {"info", level_enum::info},
    {"warn", level_enum::warn},
    {"error", level_enum::err},
    {"off", level_enum::off},
}};

constexpr char kTextPattern[] = "%Y-%m-%d %H:%M:%S.%e %-7l %n[%P] %V";
constexpr char kJsonPattern[] =
    R"({"time":"%Y-%m-%dT%H:%M:%S.%e%z","level":"%l","name":"%n","pid":%P,"thread":%t,"message":"%V"%Q})";

// Appends the text as it may stand in a line, or in a string of JSON: what could forge or break it
// (control characters, and for JSON quotes and backslashes) is escaped.
void AppendEscaped(std::string_view text, bool json, spdlog::memory_buf_t& out) {
  for (const char c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      fmt::format_to(std::back_inserter(out), "\\u{:04x}", static_cast<unsigned char>(c));
      continue;
    }
    if (json && (c == '"' || c == '\\')) {
      out.push_back('\\');
    }
    out.push_back(c);
  }
}

// The pattern flag %V: the message, escaped, for it holds names that come from other processes.
class EscapedMessage : public spdlog::custom_flag_formatter {
 public:
  explicit EscapedMessage(bool json) : json_(json) {}

  void format(const spdlog::details::log_msg& message, const std::tm&,
              spdlog::memory_buf_t& out) override {
    AppendEscaped({message.payload.data(), message.payload.size()}, json_, out);
  }

  std::unique_ptr<custom_flag_formatter> clone() const override {
    return std::make_unique<EscapedMessage>(json_);
  }

 private:
  const bool json_;
};

// The fields of the line that this thread logs: a line is written by the thread that logs it,
// before its call returns.
thread_local const LogFields* fields_of_line = nullptr;

// The pattern flag %Q: those fields as members of JSON, each behind a comma.
class Fields : public spdlog::custom_flag_formatter {
 public:
  void format(const spdlog::details::log_msg&, const std::tm&, spdlog::memory_buf_t& out) override {
    if (fields_of_line == nullptr) {
      return;
    }
    const LogFields& fields = *fields_of_line;
    AppendText("event", fields.event, out);
    AppendText("job", fields.job, out);
    AppendNumber("uid", fields.uid, out);
    AppendNumber("rank", fields.rank, out);
    if (!fields.more.empty()) {
      fmt::format_to(std::back_inserter(out), ",{}", fields.more);
    }
  }

  std::unique_ptr<custom_flag_formatter> clone() const override {
    return std::make_unique<Fields>();
  }

 private:
  static void AppendText(const char* name, std::string_view text, spdlog::memory_buf_t& out) {
    if (!text.empty()) {
      fmt::format_to(std::back_inserter(out), ",\"{}\":\"", name);
      AppendEscaped(text, true, out);
      out.push_back('"');
    }
  }
  static void AppendNumber(const char* name, std::optional<uint32_t> number,
                           spdlog::memory_buf_t& out) {
    if (number.has_value()) {
      fmt::format_to(std::back_inserter(out), ",\"{}\":{}", name, *number);
    }
  }
};

std::optional<level_enum> FindLevel(std::string_view name) {
  for (const auto& [text, level] : kLevels) {
    if (text == name) {
      return level;
    }
  }
  return std::nullopt;
}

StatusOr<spdlog::sink_ptr> MakeSink(const std::string& file) {
  if (file.empty()) {
    return spdlog::sink_ptr(std::make_shared<spdlog::sinks::stderr_sink_mt>());
  }
  try {
    return spdlog::sink_ptr(std::make_shared<spdlog::sinks::basic_file_sink_mt>(file));
  } catch (const spdlog::spdlog_ex& error) {
    return Status(ErrorCode::kConfiguration, std::string("log_file: ") + error.what());
  }
}

}  // namespace

Status SetUpLog(const std::string& name, const LogSettings& settings) {
  const std::optional<level_enum> level = FindLevel(settings.level);
  if (!level) {
    return {ErrorCode::kConfiguration, "log_level cannot be \"" + settings.level +
                                           "\": it must be one of trace, debug, info, warn, "
                                           "error, off"};
  }
  const bool json = settings.format == "json";
  if (!json && settings.format != "text") {
    return {ErrorCode::kConfiguration,
            "log_format cannot be \"" + settings.format + "\": it must be one of text, json"};
  }
  StatusOr<spdlog::sink_ptr> sink = MakeSink(settings.file);
  FERRY_RETURN_IF_ERROR(sink.status());

  auto formatter = std::make_unique<spdlog::pattern_formatter>();
  formatter->add_flag<EscapedMessage>('V', json).add_flag<Fields>('Q');
  formatter->set_pattern(json ? kJsonPattern : kTextPattern);
  auto logger = std::make_shared<spdlog::logger>(name, *sink);
  logger->set_formatter(std::move(formatter));
  logger->set_level(*level);
  logger->flush_on(level_enum::trace);
  spdlog::set_default_logger(std::move(logger));
  return {};
}

void LogEvent(level_enum level, const LogFields& fields, std::string_view text) {
  fields_of_line = &fields;
  spdlog::log(level, "{}", text);
  fields_of_line = nullptr;
}

void LogEventLimited(RateLimiter& limiter, level_enum level, const LogFields& fields,
                     std::string_view text) {
  fields_of_line = &fields;
  LogLimited(limiter, level, "{}", text);
  fields_of_line = nullptr;
}

std::optional<uint64_t> RateLimiter::Admit(uint64_t now_ns) {
  const std::lock_guard lock(mutex_);
  if (passed_ == 0 || now_ns - interval_start_ns_ >= interval_ns_) {
    interval_start_ns_ = now_ns;
    passed_ = 0;
  }
  if (passed_ == burst_) {
    ++dropped_;
    return std::nullopt;
  }
  ++passed_;
  return std::exchange(dropped_, 0);
}

}  // namespace ferry
