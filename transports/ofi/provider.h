// Chooses the libfabric provider and its NIC domain.
#pragma once

#include <string>
#include <vector>

#include "common/status.h"
#include "transports/api/transport.h"
#include "transports/ofi/fid.h"

namespace ferry::transport {

// The API version asked of libfabric.
inline constexpr uint32_t kFabricVersion = FI_VERSION(1, 17);

// What the provider named by `options` (or, for "auto", the first of the preference table that is
// there) offers. Errors: kUnsupported, kInvalidArgument (source address), kSystem.
StatusOr<InfoPtr> ChooseProvider(const TransportOptions& options);

// Providers on this machine that can carry Ferry, best first; the last ones are never chosen
// automatically.
std::vector<std::string> AvailableProviders();

}  // namespace ferry::transport
