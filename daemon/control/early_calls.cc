#include "daemon/control/early_calls.h"

#include <algorithm>
#include <cstring>
#include <string_view>

namespace ferry::daemon {

// Bytes that are not HTTP/2 are read as if they were: gRPC ends such a connection by itself.
bool EarlyCalls::OnClientSaid(std::span<const std::byte> bytes) {
  while (!acknowledged_ && begun_ <= most_ && !bytes.empty()) {
    if (skip_ > 0) {
      const size_t size = std::min(skip_, bytes.size());
      skip_ -= size;
      bytes = bytes.subspan(size);
      continue;
    }
    const size_t size = std::min(header_.size() - header_bytes_, bytes.size());
    std::memcpy(&header_[header_bytes_], bytes.data(), size);
    header_bytes_ += size;
    bytes = bytes.subspan(size);
    if (header_bytes_ == header_.size()) {
      OnFrame(http2::ReadFrameHeader({header_.data(), header_.size()}));
      header_bytes_ = 0;
    }
  }
  return begun_ <= most_;
}

void EarlyCalls::OnFrame(const http2::FrameHeader& header) {
  skip_ = header.payload_bytes;
  if (header.type == http2::FrameType::kHeaders) {
    ++begun_;
  } else if (header.type == http2::FrameType::kSettings && (header.flags & http2::kAck) != 0) {
    acknowledged_ = server_spoke_;
  }
}

}  // namespace ferry::daemon
