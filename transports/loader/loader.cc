#include "transports/loader/loader.h"

#include <algorithm>
#include <array>
#include <sstream>
#include <string>
#include <vector>

#include "config/ensure_environment.h"
#include "transports/ofi/environment.h"
#include "transports/ofi/ofi_transport.h"
#include "transports/rails/rails_transport.h"

namespace ferry::transport {
namespace {

std::vector<std::string> Entries(const std::string& list) {
  std::vector<std::string> entries;
  std::istringstream text(list);
  for (std::string entry; std::getline(text, entry, ',');) {
    std::erase(entry, ' ');
    if (!entry.empty()) {
      entries.push_back(entry);
    }
  }
  return entries;
}

}  // namespace

TransportOptions TransportOptionsFrom(const config::Options& options) {
  TransportOptions transport;
  transport.provider = options.provider;
  transport.source_address = options.fabric_address;
  transport.port = static_cast<uint16_t>(options.fabric_port);
  transport.rails = Entries(options.fabric_rails);
  transport.stripe_bytes = options.rail_stripe_bytes;
  transport.post_timeout_ns = options.operation_timeout_ms * 1'000'000;
  return transport;
}

StatusOr<std::unique_ptr<Transport>> OpenTransport(const TransportOptions& options) {
  return options.rails.empty() ? CreateOfiTransport(options)
                               : CreateRailsTransport(options, CreateOfiTransport);
}

Status EnsureEnvironment() {
  std::array<config::Variable, kRequiredEnvironment.size()> variables{};
  std::transform(kRequiredEnvironment.begin(), kRequiredEnvironment.end(), variables.begin(),
                 [](const EnvironmentVariable& variable) {
                   return config::Variable{variable.name, variable.value};
                 });
  return config::EnsureEnvironment(variables);
}

}  // namespace ferry::transport
