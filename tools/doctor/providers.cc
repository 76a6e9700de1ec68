#include "tools/doctor/providers.h"

#include "transports/loader/providers.h"

namespace ferry::tools {

std::vector<Provider> ListProviders() {
  std::vector<Provider> providers;
  for (const transport::ListedProvider& listed : transport::ListProviders()) {
    providers.push_back({listed.name, listed.usable});
  }
  return providers;
}

std::string LibfabricVersion() { return transport::LibraryVersion(); }

}  // namespace ferry::tools
