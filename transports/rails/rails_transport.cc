#include "transports/rails/rails_transport.h"

#include <arpa/inet.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "transports/api/accounting.h"
#include "transports/rails/rail_set.h"

namespace ferry::transport {
namespace {

constexpr uint32_t kRailMessageSlots = 64;

bool IsIpAddress(const std::string& text) {
  in6_addr scratch{};
  return inet_pton(AF_INET, text.c_str(), &scratch) == 1 ||
         inet_pton(AF_INET6, text.c_str(), &scratch) == 1;
}

}  // namespace

StatusOr<std::unique_ptr<Transport>> CreateRailsTransport(const TransportOptions& options,
                                                          const OpenRail& open) {
  if (options.rails.size() >= kMaxRails || options.stripe_bytes == 0) {
    return Status(ErrorCode::kInvalidArgument,
                  "TransportOptions: " + std::to_string(options.rails.size()) +
                      " further rails with stripes of " + std::to_string(options.stripe_bytes) +
                      " bytes; there may be " + std::to_string(kMaxRails - 1) +
                      ", with 1 byte or more");
  }
  TransportOptions of_rail = options;
  of_rail.rails.clear();
  // The limits are enforced here, over all rails; the rails' own limits must only be large enough.
  const uint64_t operations = uint64_t{options.max_outstanding} + OperationReserve(options);
  const uint64_t slots = operations * kPostedStripesPerRail + kRailMessageSlots;
  of_rail.max_outstanding = static_cast<uint32_t>(std::min<uint64_t>(slots, 1U << 16));
  of_rail.max_outstanding_per_peer = of_rail.max_outstanding;
  of_rail.receive_buffer_bytes =
      std::max<uint32_t>(options.receive_buffer_bytes, sizeof(RailMessage));
  std::vector<std::unique_ptr<Transport>> rails;
  StatusOr<std::unique_ptr<Transport>> first = open(of_rail);
  FERRY_RETURN_IF_ERROR(first.status());
  of_rail.provider = (*first)->Describe().provider;
  rails.push_back(std::move(*first));
  of_rail.receive_buffers = 4;  // for probes: all other messages go by the first
  of_rail.receive_buffer_bytes = sizeof(RailMessage);
  of_rail.attachment_bytes = 0;
  for (const std::string& name : options.rails) {
    const bool by_address = IsIpAddress(name);
    of_rail.source_address = by_address ? name : options.source_address;
    of_rail.domain = by_address ? "" : name;
    StatusOr<std::unique_ptr<Transport>> rail = open(of_rail);
    if (!rail.ok()) {
      return Status(rail.status().code(), "rail '" + name + "': " + rail.status().message());
    }
    rails.push_back(std::move(*rail));
  }
  auto transport = std::make_unique<RailSet>(options, std::move(rails));
  FERRY_RETURN_IF_ERROR(transport->Open());
  return std::unique_ptr<Transport>(std::move(transport));
}

}  // namespace ferry::transport
