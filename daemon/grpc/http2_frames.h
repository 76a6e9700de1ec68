// Reads and writes as much of HTTP/2 (RFC 9113) and its header compression (RFC 7541) as it takes
// to speak with a gRPC client or server without gRPC, or to read their connections: frames, and
// header fields written as plain literals.
//
// Any thread; nothing blocks.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace ferry::daemon::http2 {

inline constexpr std::string_view kClientPreface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
inline constexpr size_t kFrameHeaderBytes = 9;

enum class FrameType : uint8_t {
  kData = 0,
  kHeaders = 1,
  kPriority = 2,
  kResetStream = 3,
  kSettings = 4,
  kPushPromise = 5,
  kPing = 6,
  kGoAway = 7,
  kWindowUpdate = 8,
  kContinuation = 9,
};
inline constexpr uint8_t kAck = 0x1;        // of settings and pings
inline constexpr uint8_t kEndStream = 0x1;  // of headers and data
inline constexpr uint8_t kEndHeaders = 0x4;

struct FrameHeader {
  uint32_t payload_bytes = 0;
  FrameType type{};
  uint8_t flags = 0;
  uint32_t stream = 0;
};

inline std::string Frame(FrameType type, uint8_t flags, uint32_t stream, std::string_view payload) {
  const auto byte = [](size_t value, int shift) {
    return static_cast<char>(value >> shift & 0xFF);
  };
  const size_t size = payload.size();
  std::string frame = {
      byte(size, 16),           byte(size, 8),    byte(size, 0),    static_cast<char>(type),
      static_cast<char>(flags), byte(stream, 24), byte(stream, 16), byte(stream, 8),
      byte(stream, 0)};
  return frame.append(payload);
}

// `bytes` has at least kFrameHeaderBytes.
inline FrameHeader ReadFrameHeader(std::string_view bytes) {
  const auto at = [bytes](size_t i) {
    return static_cast<uint32_t>(static_cast<uint8_t>(bytes[i]));
  };
  return {at(0) << 16 | at(1) << 8 | at(2), static_cast<FrameType>(at(3)),
          static_cast<uint8_t>(at(4)), (at(5) & 0x7F) << 24 | at(6) << 16 | at(7) << 8 | at(8)};
}

// Appends a string to a header block: its length, with a prefix of seven bits, then its bytes.
inline void AppendString(std::string_view text, std::string* block) {
  constexpr size_t kPrefix = 127;
  size_t rest = text.size();
  if (rest < kPrefix) {
    block->push_back(static_cast<char>(rest));
  } else {
    block->push_back(static_cast<char>(kPrefix));
    for (rest -= kPrefix; rest >= 128; rest >>= 7) {
      block->push_back(static_cast<char>((rest & 0x7F) | 0x80));
    }
    block->push_back(static_cast<char>(rest));
  }
  block->append(text);
}

// Appends a header field as a literal that neither end keeps for later references.
inline void AppendField(std::string_view name, std::string_view value, std::string* block) {
  block->push_back('\0');
  AppendString(name, block);
  AppendString(value, block);
}

}  // namespace ferry::daemon::http2
