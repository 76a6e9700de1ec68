// Opens the transport that the options name. This is the only place that names concrete transports;
// the daemon and the tools call it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "common/status.h"
#include "config/options.h"
#include "transports/api/transport.h"

namespace ferry::transport {

// The options of a transport, which a caller may change before it opens one.
TransportOptions TransportOptionsFrom(const config::Options& options);

// Calling thread: any; the result belongs to one. May block while the provider looks for its
// devices. The errors of CreateOfiTransport (transports/ofi/ofi_transport.h) or CreateTcpTransport
// (transports/tcp/tcp_transport.h).
StatusOr<std::unique_ptr<Transport>> OpenTransport(const TransportOptions& options);

// Makes sure that the environment holds the variables that the transport's library reads; the
// library is opened with the first transport. Main thread, before any other.
Status EnsureEnvironment();

// The providers on this machine, for diagnosis.
//
// Any thread; the first call opens the library, and blocks while it looks for devices.
struct ListedProvider {
  std::string name;
  bool usable = false;  // has reliable datagrams, messages and RMA, as a Transport needs
};

// Returns Ferry's own provider, and all of libfabric's if there is one.
std::vector<ListedProvider> ListProviders();

// "1.17", or "(not installed)".
std::string LibraryVersion();

}  // namespace ferry::transport
