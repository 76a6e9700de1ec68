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

// Returns how many operations one peer may have outstanding.
inline uint32_t PerPeerLimit(const TransportOptions& options) {
  return options.max_outstanding_per_peer != 0 ? options.max_outstanding_per_peer
                                               : std::max(1U, options.max_outstanding / 2);
}

// Peers that take nothing must not keep the others from being served. So each peer may have its
// part of max_outstanding, and at least kLeastOfPeer, even when others have all of it: out of a
// reserve, the last quarter of which is kept for peers that have less than that.
inline constexpr uint32_t kLeastOfPeer = 4;
// Slots in reserve, for the parts of many peers. An unused slot costs some hundred bytes.
inline uint32_t OperationReserve(const TransportOptions& options) {
  constexpr uint32_t kMost = 768;
  return std::min(3 * options.max_outstanding, kMost);
}
// The use of the slots that all peers share.
struct OperationUse {
  uint32_t most = 0;  // to be outstanding in all, but for the reserve
  uint32_t reserve = 0;
  uint32_t outstanding = 0;
  uint32_t peers = 0;  // that have some outstanding
};
// Returns true if a peer that has `of_peer` operations outstanding may have one more.
inline bool MayHaveOneMore(const OperationUse& use, uint32_t of_peer) {
  if (use.outstanding < use.most) {
    return true;
  }
  const uint32_t peers = use.peers + (of_peer == 0 ? 1 : 0);
  const bool is_scarce = use.outstanding >= use.most + use.reserve - use.reserve / 4;
  const uint32_t part = is_scarce ? 0 : use.most / peers;
  return of_peer < std::max(part, kLeastOfPeer);
}

// Copies by memcpy: std::copy of std::byte takes them one by one.
inline void CopyBytes(std::span<const std::byte> from, std::byte* to) {
  if (!from.empty()) {
    std::memcpy(to, from.data(), from.size());
  }
}

// Returns true if [address, address + length) lies within [base, base + bytes).
inline bool Contains(const void* base, uint64_t bytes, const void* address, uint64_t length) {
  const auto begin = reinterpret_cast<uintptr_t>(base);
  const auto at = reinterpret_cast<uintptr_t>(address);
  return at >= begin && at - begin <= bytes && length <= bytes - (at - begin);
}

}  // namespace ferry::transport
