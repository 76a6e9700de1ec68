// Checks of TransportOptions, and what follows from them.
#pragma once

#include <rdma/fabric.h>

#include <cstddef>
#include <cstdint>

#include "common/status.h"
#include "transports/api/transport.h"

namespace ferry::transport {

// Before a provider is known.
Status CheckOptions(const TransportOptions& options);
// Against what the provider chosen can do.
Status CheckLimits(const TransportOptions& options, const fi_info& info);

// Slots for operations: spare ones beside max_outstanding, for abandoned operations.
uint32_t OperationSlots(const TransportOptions& options);
// Completions that deferred operations can have pending: their failures.
size_t DeferredCompletions(const TransportOptions& options);
// Of the copy of a message, sent or received.
size_t CellBytes(const TransportOptions& options);
// A buffer for a message that arrives: it may have an attachment.
size_t ReceiveBytes(const TransportOptions& options);

}  // namespace ferry::transport
