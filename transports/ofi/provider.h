// Chooses the libfabric provider and its NIC domain.
#pragma once

#include <string>
#include <vector>

#include "common/status.h"
#include "transports/api/transport.h"
#include "transports/ofi/library.h"
#include "transports/ofi/slingshot_key.h"

namespace ferry::transport {

// The API version asked of libfabric.
inline constexpr uint32_t kFabricVersion = FI_VERSION(1, 17);
// The first version that registers device memory by dma-buf. It is asked of newer libraries where
// the provider reaches device memory.
inline constexpr uint32_t kDmabufVersion = FI_VERSION(1, 20);

// Returns the offer (fi_info) of the provider that `options` names (for "auto", the first available
// one of the preference table), with the job's key if it is Slingshot's. Errors: those of
// OpenLibfabric, kUnsupported, kInvalidArgument (source address), kConfiguration (`slingshot`),
// kSystem.
StatusOr<InfoPtr> ChooseProvider(const TransportOptions& options, const SlingshotWords& slingshot);

// Returns true if "auto" finds a NIC that has a provider of its own, beside the kernel's sockets.
// False if there is no libfabric.
bool HasAutomaticNic(const TransportOptions& options);

// Returns true if registering memory pins it, which takes long, and may be done beside the thread
// that moves data: "Control interfaces are always considered thread safe" (fi_domain(3)). `net` of
// libfabric 1.17, for one, breaks that rule under FI_THREAD_DOMAIN. But where nothing is pinned, as
// with all providers that are not listed, registering takes no time.
bool PinsMemory(const fi_info& info);

// Returns the providers on this machine that can carry Ferry, best first; the last ones are never
// chosen automatically. libfabric must be open.
std::vector<std::string> AvailableProviders();

}  // namespace ferry::transport
