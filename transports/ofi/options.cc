#include "transports/ofi/options.h"

#include <algorithm>
#include <string>

namespace ferry::transport {
namespace {

constexpr uint32_t kSlotsPerOutstanding = 2;
constexpr size_t kCacheLine = 64;
constexpr uint32_t kUsualDeferredEntries = 512;

Status BeyondLimit(const std::string& what) {
  return Status(ErrorCode::kLimitExceeded, "TransportOptions: " + what);
}

}  // namespace

// Receive buffers may take half of the provider's receive queue: ofi_rxm hangs when all of it is
// posted.
Status CheckLimits(const TransportOptions& options, const fi_info& info) {
  const size_t most = std::max<size_t>(1, info.rx_attr->size / 2);
  if (options.receive_buffers > most) {
    return BeyondLimit("receive_buffers is " + std::to_string(options.receive_buffers) +
                       "; provider " + info.fabric_attr->prov_name + " takes " +
                       std::to_string(most) + " at most");
  }
  if (ReceiveBytes(options) > info.ep_attr->max_msg_size) {
    return BeyondLimit(
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
