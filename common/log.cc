#include "common/log.h"

#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/stdout_sinks.h>

#include <array>
#include <memory>
#include <string_view>

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
    R"({"time":"%Y-%m-%dT%H:%M:%S.%e%z","level":"%l","name":"%n","pid":%P,"thread":%t,"message":"%V"})";

// The pattern flag %V: the message with what could forge or break a line (control characters, and
// for JSON quotes and backslashes) escaped. Messages hold names that come from other processes.
class EscapedMessage : public spdlog::custom_flag_formatter {
 public:
  explicit EscapedMessage(bool json) : json_(json) {}

  void format(const spdlog::details::log_msg& message, const std::tm&,
              spdlog::memory_buf_t& out) override {
    for (const char c : message.payload) {
      if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
        fmt::format_to(std::back_inserter(out), "\\u{:04x}", static_cast<unsigned char>(c));
        continue;
      }
      if (json_ && (c == '"' || c == '\\')) {
        out.push_back('\\');
      }
      out.push_back(c);
    }
  }

  std::unique_ptr<custom_flag_formatter> clone() const override {
    return std::make_unique<EscapedMessage>(json_);
  }

 private:
  const bool json_;
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
  formatter->add_flag<EscapedMessage>('V', json).set_pattern(json ? kJsonPattern : kTextPattern);
  auto logger = std::make_shared<spdlog::logger>(name, *sink);
  logger->set_formatter(std::move(formatter));
  logger->set_level(*level);
  logger->flush_on(level_enum::trace);
  spdlog::set_default_logger(std::move(logger));
  return {};
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
