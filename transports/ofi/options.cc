#include "transports/ofi/options.h"

#include <algorithm>
#include <string>

namespace ferry::transport {
namespace {

constexpr uint32_t kSlotsPerOutstanding = 2;
constexpr size_t kCacheLine = 64;
constexpr uint32_t kUsualDeferredEntries = 512;

Status InvalidOption(ErrorCode code, const std::string& what) {
  return Status(code, "TransportOptions: " + what);
}

}  // namespace

Status CheckOptions(const TransportOptions& options) {
  constexpr uint32_t kMost = 1U << 16;
  if (options.max_outstanding == 0 || options.max_outstanding > kMost) {
    return InvalidOption(ErrorCode::kInvalidArgument, "max_outstanding must be 1 to 65536, not " +
                                                          std::to_string(options.max_outstanding));
  }
  if (options.max_outstanding_per_peer > options.max_outstanding) {
    return InvalidOption(ErrorCode::kInvalidArgument,
                         "max_outstanding_per_peer exceeds max_outstanding");
  }
  if (options.receive_buffers == 0 || options.receive_buffer_bytes == 0) {
    return InvalidOption(ErrorCode::kInvalidArgument,
                         "receive_buffers and receive_buffer_bytes must be 1 or more");
  }
  if (options.deferred_entries > kMost) {
    return InvalidOption(ErrorCode::kInvalidArgument, "deferred_entries must be 0 to 65536, not " +
                                                          std::to_string(options.deferred_entries));
  }
  if (options.fragment_bytes == 0 || options.post_timeout_ns == 0) {
    return InvalidOption(ErrorCode::kInvalidArgument,
                         "fragment_bytes and post_timeout_ns must be 1 or more");
  }
  return Status();
}

// Receive buffers may take half of the provider's receive queue: ofi_rxm hangs when all of it is
// posted.
Status CheckLimits(const TransportOptions& options, const fi_info& info) {
  const size_t most = std::max<size_t>(1, info.rx_attr->size / 2);
  if (options.receive_buffers > most) {
    return InvalidOption(ErrorCode::kLimitExceeded,
                         "receive_buffers is " + std::to_string(options.receive_buffers) +
                             "; provider " + info.fabric_attr->prov_name + " takes " +
                             std::to_string(most) + " at most");
  }
  if (ReceiveBytes(options) > info.ep_attr->max_msg_size) {
    return InvalidOption(ErrorCode::kLimitExceeded,
                         "receive_buffer_bytes and attachment_bytes exceed the provider's largest "
                         "message of " +
                             std::to_string(info.ep_attr->max_msg_size) + " bytes");
  }
  return Status();
}

uint32_t OperationSlots(const TransportOptions& options) {
  return options.max_outstanding * kSlotsPerOutstanding;
}

size_t DeferredCompletions(const TransportOptions& options) {
  return options.deferred_entries != 0 ? options.deferred_entries : kUsualDeferredEntries;
}

size_t CellBytes(const TransportOptions& options) {
  return (options.receive_buffer_bytes + kCacheLine - 1) / kCacheLine * kCacheLine;
}

size_t ReceiveBytes(const TransportOptions& options) {
  return (CellBytes(options) + options.attachment_bytes + kCacheLine - 1) / kCacheLine * kCacheLine;
}

}  // namespace ferry::transport
