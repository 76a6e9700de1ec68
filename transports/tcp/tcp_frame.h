// The messages that two TcpTransports exchange over a connection.
//
// The side that connects sends a Hello, and is answered by a Welcome. From then on both sides send
// frames: a header, a head of `head_bytes`, and for some kinds `data_bytes` of data with a trailer
// behind it. Numbers are little-endian, as on all machines that Ferry runs on.
//
// Pure: any thread.
#pragma once

#include <bit>
#include <cstdint>

#include "transports/tcp/tcp_address.h"

namespace ferry::transport {

static_assert(std::endian::native == std::endian::little);

inline constexpr uint32_t kTcpMagic = 0x70637466;  // "ftcp"
inline constexpr uint32_t kTcpVersion = 2;

struct TcpHello {
  uint32_t magic = kTcpMagic;
  uint32_t version = kTcpVersion;
  uint64_t guest = 0;  // the caller's number in the address that it has
  Secret proof{};      // and its TcpAddress::calls
  uint64_t reserved = 0;
  TcpEndpoint from{};  // where the caller listens; believed of guest 0, which has no other name
};
static_assert(sizeof(TcpHello) == 64);

enum class TcpAnswer : uint32_t {
  kWelcome = 1,
  kUseOther = 2,  // there is, or will be, a connection that the called side has made
};

struct TcpWelcome {
  uint32_t magic = kTcpMagic;
  uint32_t version = kTcpVersion;
  TcpAnswer answer = TcpAnswer::kWelcome;
  uint32_t reserved = 0;
  Secret proof{};  // TcpAddress::answers of the address that the caller has
};
static_assert(sizeof(TcpWelcome) == 32);

enum class FrameKind : uint32_t {
  kMessage = 1,      // head: the message
  kMessageFrom = 2,  // head: the header of a message; data: its attachment
  kRead = 3,         // head: a key; asks for `data_bytes` at `address`, which come as kData
  kData = 4,         // data: the next bytes that the read `id` wants
  kWrite = 5,        // head: a key; data: goes to `address`; an `id` other than 0 wants an answer
  kPlaced = 6,       // the data of the write `id` is in its place
  kRefused = 7,      // the read or write `id` has a wrong key, address or length
};

struct FrameHeader {
  uint32_t kind = 0;  // FrameKind
  uint32_t head_bytes = 0;
  uint64_t data_bytes = 0;
  uint64_t address = 0;
  uint64_t id = 0;
};
static_assert(sizeof(FrameHeader) == 32);

inline constexpr uint32_t kKeyBytes = sizeof(uint64_t);

// Behind data. The sender may find only after it has begun to send data that the memory cannot be
// read: zeros then take the place of the data, and the trailer says so.
enum class FrameTrailer : uint64_t { kGood = 0, kSpoilt = 1 };

// More than any read or write has in one frame.
inline constexpr uint64_t kMostFrameBytes = uint64_t{1} << 40;

enum class FrameVerdict { kGood, kMisfit, kBad };

constexpr bool HasData(FrameKind kind) {
  return kind == FrameKind::kMessageFrom || kind == FrameKind::kData || kind == FrameKind::kWrite;
}

// Judges a header. kMisfit: a message longer than we take, as a peer with other options may send.
// kBad: a header that no peer sends.
constexpr FrameVerdict Judge(const FrameHeader& frame, uint64_t max_head_bytes,
                             uint64_t max_attachment_bytes) {
  const auto good = [](bool condition) {
    return condition ? FrameVerdict::kGood : FrameVerdict::kBad;
  };
  const bool some = frame.data_bytes != 0 && frame.data_bytes <= kMostFrameBytes;
  switch (static_cast<FrameKind>(frame.kind)) {
    case FrameKind::kMessage:
      return frame.data_bytes != 0               ? FrameVerdict::kBad
             : frame.head_bytes > max_head_bytes ? FrameVerdict::kMisfit
                                                 : FrameVerdict::kGood;
    case FrameKind::kMessageFrom:
      return !some ? FrameVerdict::kBad
             : frame.head_bytes > max_head_bytes || frame.data_bytes > max_attachment_bytes
                 ? FrameVerdict::kMisfit
                 : FrameVerdict::kGood;
    case FrameKind::kRead:
    case FrameKind::kWrite:
      return good(some && frame.head_bytes == kKeyBytes);
    case FrameKind::kData:
      return good(some && frame.head_bytes == 0);
    case FrameKind::kPlaced:
    case FrameKind::kRefused:
      return good(frame.data_bytes == 0 && frame.head_bytes == 0);
  }
  return FrameVerdict::kBad;
}

}  // namespace ferry::transport
