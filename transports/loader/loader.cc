#include "transports/loader/loader.h"

#include <algorithm>
#include <array>

#include "config/ensure_environment.h"
#include "transports/ofi/environment.h"
#include "transports/ofi/ofi_transport.h"

namespace ferry::transport {

TransportOptions TransportOptionsFrom(const config::Options& options) {
  TransportOptions transport;
  transport.provider = options.provider;
  transport.source_address = options.fabric_address;
  transport.port = static_cast<uint16_t>(options.fabric_port);
  transport.post_timeout_ns = options.operation_timeout_ms * 1'000'000;
  return transport;
}

StatusOr<std::unique_ptr<Transport>> OpenTransport(const TransportOptions& options) {
  return CreateOfiTransport(options);
}

Status EnsureEnvironment(char** argv) {
  std::array<config::Variable, kRequiredEnvironment.size()> variables{};
  std::transform(kRequiredEnvironment.begin(), kRequiredEnvironment.end(), variables.begin(),
                 [](const EnvironmentVariable& variable) {
                   return config::Variable{variable.name, variable.value};
                 });
  return config::EnsureEnvironment(argv, variables);
}

}  // namespace ferry::transport
