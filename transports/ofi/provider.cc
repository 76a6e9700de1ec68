#include "transports/ofi/provider.h"

#include <rdma/fi_errno.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <string_view>

#include "transports/ofi/library.h"
#include "transports/ofi/slingshot_key.h"

namespace ferry::transport {
namespace {

enum class Addressing { kIp, kDevice };

struct ProviderRule {
  std::string_view name;
  Addressing addressing;
  bool automatic;
  bool pins = false;      // see PinsMemory
  bool deferred = false;  // runs deferred work
  bool sockets = false;   // over the kernel's sockets: no NIC of its own
};

// Best first: NICs with their own reliable datagrams and queues, then RDMA connections, then TCP.
// `sockets` is slow, but runs deferred work without a special NIC: for development, on request.
constexpr std::string_view kSlingshot = "cxi";
constexpr std::array<ProviderRule, 7> kPreferences = {{
    {kSlingshot, Addressing::kDevice, true, true, true},
    {"efa", Addressing::kDevice, true, true},
    {"psm3", Addressing::kDevice, true},
    {"verbs;ofi_rxm", Addressing::kIp, true, true},
    {"net", Addressing::kIp, true, false, false, true},
    {"tcp;ofi_rxm", Addressing::kIp, true, false, false, true},
    {"sockets", Addressing::kIp, false, false, true, true},
}};

// "tcp" stands for "tcp;ofi_rxm". A provider without a rule is addressed by its device.
ProviderRule RuleFor(std::string_view name) {
  for (const ProviderRule& rule : kPreferences) {
    if (name == rule.name || name == rule.name.substr(0, rule.name.find(';'))) {
      return rule;
    }
  }
  return {name, Addressing::kDevice, false};
}

InfoPtr MakeHints(const ProviderRule& rule, const std::string& domain) {
  InfoPtr hints = AllocateInfo();
  if (hints == nullptr) {
    return hints;
  }
  hints->ep_attr->type = FI_EP_RDM;
  hints->caps = FI_MSG | FI_RMA;
  hints->mode = FI_CONTEXT | FI_CONTEXT2;
  hints->domain_attr->mr_mode =
      FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY | FI_MR_ENDPOINT;
  hints->domain_attr->threading = FI_THREAD_DOMAIN;
  hints->domain_attr->resource_mgmt = FI_RM_ENABLED;
  hints->domain_attr->av_type = FI_AV_TABLE;
  hints->tx_attr->msg_order = FI_ORDER_SAS;
  hints->rx_attr->msg_order = FI_ORDER_SAS;
  hints->fabric_attr->prov_name = strdup(std::string(rule.name).c_str());
  if (!domain.empty()) {
    hints->domain_attr->name = strdup(domain.c_str());
  }
  return hints;
}

// The first of the list on `domain` (any, if empty): not every provider heeds the hint.
InfoPtr OnDomain(InfoPtr list, const std::string& domain) {
  if (domain.empty()) {
    return list;
  }
  for (const fi_info* info = list.get(); info != nullptr; info = info->next) {
    if (domain == info->domain_attr->name) {
      return InfoPtr(OpenedLibfabric().dupinfo(info));
    }
  }
  return nullptr;
}

// The capabilities to ask for, the fullest set first: not every provider has deferred work, or
// FI_SOURCE, by which messages name their sender.
std::vector<uint64_t> CapabilitiesToTry(const ProviderRule& rule) {
  constexpr uint64_t kBasic = FI_MSG | FI_RMA;
  constexpr uint64_t kDeferred = FI_ATOMIC | FI_TRIGGER | FI_RMA_EVENT;
  std::vector<uint64_t> capabilities;
  for (const uint64_t deferred : {kDeferred, uint64_t{0}}) {
    if (deferred == 0 || rule.deferred) {
      capabilities.push_back(kBasic | FI_SOURCE | deferred);
      capabilities.push_back(kBasic | deferred);
    }
  }
  return capabilities;
}

// Returns the provider's offer with device memory, if there is one; else `info`. `ask` asks with
// these hints.
template <typename Ask>
InfoPtr ReachingDevices(InfoPtr info, fi_info& hints, const Ask& ask) {
  hints.caps |= FI_HMEM;
  hints.domain_attr->mr_mode |= FI_MR_HMEM;
  fi_info* found = nullptr;
  const uint32_t version =
      OpenedLibfabric().version() >= kDmabufVersion ? kDmabufVersion : kFabricVersion;
  if (ask(version, &found) != 0) {
    return info;
  }
  InfoPtr reaching = OnDomain(InfoPtr(found), info->domain_attr->name);
  const bool is_same = reaching != nullptr && std::string_view(reaching->fabric_attr->prov_name) ==
                                                  info->fabric_attr->prov_name;
  return is_same && (reaching->caps & FI_HMEM) != 0 ? std::move(reaching) : std::move(info);
}

// Asks libfabric, for the provider as such if `options` is null, with the job's key unless `key`
// is; null with `*error` set if it has nothing.
InfoPtr Query(const ProviderRule& rule, const TransportOptions* options, const SlingshotKey* key,
              int* error) {
  const std::string domain =
      key != nullptr ? key->device : (options != nullptr ? options->domain : "");
  InfoPtr hints = MakeHints(rule, domain);
  if (hints == nullptr || (key != nullptr && !PutKey(*key, hints.get()))) {
    *error = FI_ENOMEM;
    return nullptr;
  }
  const bool by_ip = options != nullptr && rule.addressing == Addressing::kIp;
  const std::string port = by_ip ? std::to_string(options->port) : "";
  const auto ask = [&](uint32_t version, fi_info** answer) {
    return -OpenedLibfabric().getinfo(version, by_ip ? options->source_address.c_str() : nullptr,
                                      by_ip ? port.c_str() : nullptr, by_ip ? FI_SOURCE : 0,
                                      hints.get(), answer);
  };
  fi_info* found = nullptr;
  for (const uint64_t capabilities : CapabilitiesToTry(rule)) {
    hints->caps = capabilities;
    *error = ask(kFabricVersion, &found);
    if (*error == 0) {
      break;
    }
  }
  InfoPtr info = OnDomain(InfoPtr(found), domain);
  if (info == nullptr && *error == 0) {
    *error = FI_ENODATA;
  }
  if (info != nullptr && options != nullptr && options->reach_devices) {
    info = ReachingDevices(std::move(info), *hints, ask);
  }
  if (info != nullptr && key != nullptr && !PutKey(*key, info.get())) {
    *error = FI_ENOMEM;
    return nullptr;
  }
  return info;
}

// As Query, with the key that the batch system has given the job for such a network. Words of the
// batch system that make no sense, and a NIC that refuses the key, are errors: without it the NIC
// would take one that jobs share.
StatusOr<InfoPtr> QueryForJob(const ProviderRule& rule, const TransportOptions& options,
                              const SlingshotWords& slingshot, int* error) {
  InfoPtr info = Query(rule, &options, nullptr, error);
  if (info == nullptr || rule.name != kSlingshot) {
    return info;
  }
  const StatusOr<std::optional<SlingshotKey>> key = ReadSlingshotKey(slingshot, options.domain);
  FERRY_RETURN_IF_ERROR(key.status());
  if (!key->has_value()) {
    return info;
  }
  info = Query(rule, &options, &**key, error);
  if (info == nullptr) {
    return SetUpError(*error, "the NIC " + (*key)->device + " refuses the job's key of VNI " +
                                  std::to_string((*key)->vni) + " and service " +
                                  std::to_string((*key)->service) +
                                  " (SLINGSHOT_VNIS, SLINGSHOT_SVC_IDS)");
  }
  return info;
}

bool Available(const ProviderRule& rule) {
  int error = 0;
  return Query(rule, nullptr, nullptr, &error) != nullptr;
}

std::string Join(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) {
    text += (text.empty() ? "" : ", ") + name;
  }
  return text.empty() ? "none" : text;
}

Status NotAvailable(const TransportOptions& options) {
  return Status(ErrorCode::kUnsupported,
                "libfabric provider '" + options.provider + "' is not available" +
                    (options.domain.empty() ? "" : " on domain '" + options.domain + "'") +
                    "; available here: " + Join(AvailableProviders()) +
                    ". Choose one of these or 'auto'.");
}

StatusOr<InfoPtr> ChooseAutomatically(const TransportOptions& options,
                                      const SlingshotWords& slingshot) {
  for (const ProviderRule& rule : kPreferences) {
    int error = 0;
    if (rule.automatic) {
      StatusOr<InfoPtr> info = QueryForJob(rule, options, slingshot, &error);
      if (!info.ok() || *info != nullptr) {
        return info;
      }
    }
  }
  return Status(ErrorCode::kUnsupported,
                "no libfabric provider serves source address '" + options.source_address +
                    (options.domain.empty() ? "'" : "' on domain '" + options.domain + "'") +
                    "; available here: " + Join(AvailableProviders()) + ".");
}

}  // namespace

StatusOr<InfoPtr> ChooseProvider(const TransportOptions& options, const SlingshotWords& slingshot) {
  const bool is_old = options.provider == "psm" || options.provider == "psm2";
  FERRY_RETURN_IF_ERROR(OpenLibfabric(is_old ? Providers::kAll : Providers::kCommon).status());
  if (options.provider == "auto") {
    return ChooseAutomatically(options, slingshot);
  }
  const ProviderRule rule = RuleFor(options.provider);
  int error = 0;
  StatusOr<InfoPtr> info = QueryForJob(rule, options, slingshot, &error);
  if (!info.ok() || *info != nullptr) {
    return info;
  }
  if (error != FI_ENODATA && error != FI_ENOSYS) {
    return SetUpError(error, "libfabric provider '" + options.provider + "' with source address '" +
                                 options.source_address + "'");
  }
  if (options.domain.empty() && rule.addressing == Addressing::kIp && Available(rule)) {
    return Status(ErrorCode::kInvalidArgument, "source address '" + options.source_address +
                                                   "' belongs to no interface that provider '" +
                                                   options.provider +
                                                   "' can use; give an address of this machine.");
  }
  return NotAvailable(options);
}

bool HasAutomaticNic(const TransportOptions& options) {
  if (!OpenLibfabric(Providers::kCommon).ok()) {
    return false;
  }
  return std::ranges::any_of(kPreferences, [&](const ProviderRule& rule) {
    int error = 0;
    return rule.automatic && !rule.sockets && Query(rule, &options, nullptr, &error) != nullptr;
  });
}

bool PinsMemory(const fi_info& info) { return RuleFor(info.fabric_attr->prov_name).pins; }

std::vector<std::string> AvailableProviders() {
  std::vector<std::string> names;
  for (const ProviderRule& rule : kPreferences) {
    if (Available(rule)) {
      names.emplace_back(rule.name);
    }
  }
  return names;
}

}  // namespace ferry::transport
