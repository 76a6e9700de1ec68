#include "tools/ferryrun/agent_protocol.h"

#include <algorithm>
#include <cstring>

#include "common/version.h"

namespace ferry::tools {
namespace {

constexpr char kGreetingWord[] = "FERRYRUN-AGENT ";
// More than any frame needs; larger sizes come from a damaged stream.
constexpr uint32_t kMaxPayloadBytes = 64 << 20;
constexpr size_t kMaxPreambleBytes = 1 << 16;

struct RankEndPayload {
  int32_t exit_code;
  int32_t signal;
  int32_t dumped_core;
};

}  // namespace

std::string Greeting() {
  return std::string(kGreetingWord) + kFerryVersion + " " + std::to_string(kLayoutVersion) + "." +
         std::to_string(kProtocolVersion) + "\n";
}

void AppendFrame(FrameKind kind, uint32_t rank, std::string_view payload, std::string* out) {
  const FrameHeader header{static_cast<uint32_t>(payload.size()), static_cast<uint32_t>(kind),
                           rank};
  out->append(reinterpret_cast<const char*>(&header), sizeof(header)).append(payload);
}

Status FrameReader::TakeGreeting() {
  while (greeting_) {
    const size_t end = waiting_.find('\n');
    if (end == waiting_.npos) {
      return {};
    }
    const std::string line = waiting_.substr(0, end + 1);
    waiting_.erase(0, end + 1);
    if (line == Greeting()) {
      greeting_ = false;
    } else if (line.starts_with(kGreetingWord)) {
      return {ErrorCode::kVersionMismatch,
              "the ferryrun there is of another release: it says " +
                  line.substr(std::strlen(kGreetingWord),
                              line.size() - std::strlen(kGreetingWord) - 1) +
                  ", this one is " +
                  Greeting().substr(std::strlen(kGreetingWord),
                                    Greeting().size() - std::strlen(kGreetingWord) - 1)};
    } else if (preamble_.size() < kMaxPreambleBytes) {
      preamble_ += line;
    }
  }
  return {};
}

StatusOr<std::optional<Frame>> FrameReader::Next() {
  FERRY_RETURN_IF_ERROR(TakeGreeting());
  FrameHeader header{};
  if (greeting_ || waiting_.size() < sizeof(header)) {
    return std::optional<Frame>();
  }
  std::memcpy(&header, waiting_.data(), sizeof(header));
  if (header.size > kMaxPayloadBytes) {
    return Status(ErrorCode::kCorrupt, "a frame of " + std::to_string(header.size) + " bytes");
  }
  if (waiting_.size() < sizeof(header) + header.size) {
    return std::optional<Frame>();
  }
  Frame frame{static_cast<FrameKind>(header.kind), header.rank,
              waiting_.substr(sizeof(header), header.size)};
  waiting_.erase(0, sizeof(header) + header.size);
  return std::optional(std::move(frame));
}

std::string NumberPayload(int32_t number) {
  return {reinterpret_cast<const char*>(&number), sizeof(number)};
}

int32_t ReadNumber(const Frame& frame) {
  int32_t number = 0;
  std::memcpy(&number, frame.payload.data(), std::min(frame.payload.size(), sizeof(number)));
  return number;
}

std::string EndPayload(const ProcessEnd& end) {
  const RankEndPayload payload{end.exit_code, end.signal, end.dumped_core ? 1 : 0};
  return {reinterpret_cast<const char*>(&payload), sizeof(payload)};
}

ProcessEnd ReadEnd(const Frame& frame) {
  RankEndPayload payload{};
  std::memcpy(&payload, frame.payload.data(), std::min(frame.payload.size(), sizeof(payload)));
  return {payload.exit_code, payload.signal, payload.dumped_core != 0};
}

std::string FailedPayload(const Status& status) {
  return NumberPayload(static_cast<int32_t>(status.code())) + status.message();
}

Status ReadFailed(const Frame& frame) {
  const auto code = static_cast<ErrorCode>(ReadNumber(frame));
  return {code == ErrorCode::kOk ? ErrorCode::kInternal : code,
          frame.payload.substr(std::min(frame.payload.size(), sizeof(int32_t)))};
}

}  // namespace ferry::tools
