#include "transports/api/check_options.h"

#include <string>

namespace ferry::transport {
namespace {

Status InvalidOption(const std::string& what) {
  return Status(ErrorCode::kInvalidArgument, "TransportOptions: " + what);
}

}  // namespace

Status CheckOptions(const TransportOptions& options) {
  constexpr uint32_t kMost = 1U << 16;
  if (options.max_outstanding == 0 || options.max_outstanding > kMost) {
    return InvalidOption("max_outstanding must be 1 to 65536, not " +
                         std::to_string(options.max_outstanding));
  }
  if (options.max_outstanding_per_peer > options.max_outstanding) {
    return InvalidOption("max_outstanding_per_peer exceeds max_outstanding");
  }
  if (options.receive_buffers == 0 || options.receive_buffer_bytes == 0) {
    return InvalidOption("receive_buffers and receive_buffer_bytes must be 1 or more");
  }
  if (options.deferred_entries > kMost) {
    return InvalidOption("deferred_entries must be 0 to 65536, not " +
                         std::to_string(options.deferred_entries));
  }
  if (options.fragment_bytes == 0 || options.post_timeout_ns == 0) {
    return InvalidOption("fragment_bytes and post_timeout_ns must be 1 or more");
  }
  return Status();
}

}  // namespace ferry::transport
