// Checks TransportOptions against a provider, and derives sizes from them.
#pragma once

#include <rdma/fabric.h>

#include <cstddef>
#include <cstdint>

#include "common/status.h"
#include "transports/api/transport.h"

namespace ferry::transport {

// Checks the options against the limits of the chosen provider.
Status CheckLimits(const TransportOptions& options, const fi_info& info);

// Returns the number of slots for operations: max_outstanding, and spare ones for abandoned
// operations.
uint32_t OperationSlots(const TransportOptions& options);
// Returns the most completions that deferred operations can have pending: those of their failures.
size_t DeferredCompletions(const TransportOptions& options);
// Returns the bytes of a cell, which holds the copy of a message, sent or received.
size_t CellBytes(const TransportOptions& options);
// Returns the bytes of a buffer for an incoming message, which may have an attachment.
size_t ReceiveBytes(const TransportOptions& options);

}  // namespace ferry::transport
