// Counts the calls that an HTTP/2 client begins before it has acknowledged the server's settings.
// How many calls it may have open at a time is one of them, and binds it only from then on (RFC
// 9113, section 6.5.3): gRPC lets a client that never acknowledges them open calls without number.
//
// One thread at a time; nothing blocks.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "daemon/control/http2_frames.h"

namespace ferry::daemon {

class EarlyCalls {
 public:
  explicit EarlyCalls(uint32_t most) : most_(most) {}

  // Its settings come first: no client can acknowledge them before.
  void OnServerSpoke() { server_spoke_ = true; }
  // The next bytes from the client, however they are cut into pieces. False: it has begun more
  // than `most` calls, and must not be listened to any more.
  bool OnClientSaid(std::span<const std::byte> bytes);

 private:
  void OnFrame(const http2::FrameHeader& header);

  const uint32_t most_;
  uint32_t begun_ = 0;
  bool server_spoke_ = false;
  bool acknowledged_ = false;                   // from now on gRPC counts
  size_t skip_ = http2::kClientPreface.size();  // until the next frame's header
  std::array<char, http2::kFrameHeaderBytes> header_{};
  size_t header_bytes_ = 0;
};

}  // namespace ferry::daemon
