// Counting and checks that implementations of Transport share.
//
// Pure: any thread.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "transports/api/transport.h"

namespace ferry::transport {

enum class OperationKind : uint8_t { kMessage, kWrite, kRead };

// Counts an operation of so many bytes that has succeeded.
inline void CountSuccess(OperationKind kind, uint64_t bytes, Statistics* statistics) {
  switch (kind) {
    case OperationKind::kMessage:
      statistics->messages_sent++;
      statistics->message_bytes_sent += bytes;
      break;
    case OperationKind::kWrite:
      statistics->writes++;
      statistics->write_bytes += bytes;
      break;
    case OperationKind::kRead:
      statistics->reads++;
      statistics->read_bytes += bytes;
      break;
  }
}

// How many operations one peer may have outstanding.
inline uint32_t PerPeerLimit(const TransportOptions& options) {
  return options.max_outstanding_per_peer != 0 ? options.max_outstanding_per_peer
                                               : std::max(1U, options.max_outstanding / 2);
}

// Copies by memcpy: std::copy of std::byte takes them one by one.
inline void CopyBytes(std::span<const std::byte> from, std::byte* to) {
  if (!from.empty()) {
    std::memcpy(to, from.data(), from.size());
  }
}

// Whether [address, address + length) lies within [base, base + bytes).
inline bool Contains(const void* base, uint64_t bytes, const void* address, uint64_t length) {
  const auto begin = reinterpret_cast<uintptr_t>(base);
  const auto at = reinterpret_cast<uintptr_t>(address);
  return at >= begin && at - begin <= bytes && length <= bytes - (at - begin);
}

}  // namespace ferry::transport
