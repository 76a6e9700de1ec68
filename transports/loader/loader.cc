#include "transports/loader/loader.h"

#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <sstream>
#include <system_error>

#include "config/environment.h"
#include "transports/ofi/environment.h"
#include "transports/ofi/library.h"
#include "transports/ofi/ofi_transport.h"
#include "transports/ofi/provider.h"
#include "transports/rails/rails_transport.h"
#include "transports/tcp/tcp_transport.h"

namespace ferry::transport {
namespace {

InfoPtr Ask(const fi_info* hints) {
  fi_info* list = nullptr;
  const int error = OpenedLibfabric().getinfo(FI_VERSION(1, 17), nullptr, nullptr, 0, hints, &list);
  return InfoPtr(error == 0 ? list : nullptr);
}

void Note(const fi_info* list, bool usable, std::vector<ListedProvider>* providers) {
  for (const fi_info* info = list; info != nullptr; info = info->next) {
    const char* text = info->fabric_attr != nullptr ? info->fabric_attr->prov_name : nullptr;
    const std::string name = text != nullptr ? text : "?";
    const auto known = std::find_if(providers->begin(), providers->end(),
                                    [&](const ListedProvider& each) { return each.name == name; });
    if (known == providers->end()) {
      providers->push_back({name, usable});
    } else {
      known->usable |= usable;
    }
  }
}

// Sockets carry long attachments: they need not fit into a buffer that waits for them.
constexpr uint32_t kTcpAttachmentBytes = 512 << 10;

// Returns true if the kernel knows NICs that libfabric may have a provider for. Without any there
// is no need to load libfabric.
bool HasNicDevices() {
  return std::ranges::any_of(std::array{"/sys/class/infiniband", "/sys/class/cxi"},
                             [](const char* folder) {
                               std::error_code error;
                               return std::filesystem::directory_iterator(folder, error) !=
                                      std::filesystem::directory_iterator();
                             });
}

bool TakesTcp(const TransportOptions& options) {
  return options.provider == kTcpProvider ||
         (options.provider == "auto" && !(HasNicDevices() && HasAutomaticNic(options)));
}

StatusOr<std::unique_ptr<Transport>> OpenNic(const TransportOptions& options) {
  if (!TakesTcp(options)) {
    return CreateOfiTransportOfJob(
        options, TakeSlingshotWords(config::ProcessEnvironment(), &config::FindVariable));
  }
  TransportOptions tcp = options;
  if (tcp.attachment_bytes != 0) {
    tcp.attachment_bytes = std::max(tcp.attachment_bytes, kTcpAttachmentBytes);
  }
  return CreateTcpTransport(tcp);
}

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

// ---- Providers ----

std::vector<ListedProvider> ListProviders() {
  std::vector<ListedProvider> providers{{kTcpProvider, true}};
  if (!OpenLibfabric(Providers::kAll).ok()) {
    return providers;
  }
  const InfoPtr hints = AllocateInfo();
  if (hints != nullptr) {
    hints->caps = FI_MSG | FI_RMA;
    hints->ep_attr->type = FI_EP_RDM;
    // The modes that ferryd supports (transports/ofi).
    hints->domain_attr->mr_mode =
        FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY | FI_MR_ENDPOINT;
    hints->mode = FI_CONTEXT | FI_CONTEXT2;
    Note(Ask(hints.get()).get(), true, &providers);
  }
  Note(Ask(nullptr).get(), false, &providers);
  return providers;
}

std::string LibraryVersion() {
  if (!OpenLibfabric(Providers::kAll).ok()) {
    return "(not installed)";
  }
  const uint32_t version = OpenedLibfabric().version();
  return std::to_string(FI_MAJOR(version)) + "." + std::to_string(FI_MINOR(version));
}

// ---- Loader ----

TransportOptions TransportOptionsFrom(const config::Options& options) {
  TransportOptions transport;
  transport.provider = options.provider;
  transport.source_address = options.fabric_address;
  transport.port = static_cast<uint16_t>(options.fabric_port);
  transport.rails = Entries(options.fabric_rails);
  transport.stripe_bytes = options.rail_stripe_bytes;
  transport.post_timeout_ns = options.operation_timeout_ms * 1'000'000;
  transport.silence_timeout_ns = transport.post_timeout_ns;
  transport.reach_devices = true;
  return transport;
}

StatusOr<std::unique_ptr<Transport>> OpenTransport(const TransportOptions& options) {
  return options.rails.empty() ? OpenNic(options) : CreateRailsTransport(options, OpenNic);
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
