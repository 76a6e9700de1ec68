#include "tools/doctor/providers.h"

#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>

#include <algorithm>
#include <memory>

namespace ferry::tools {
namespace {

struct FreeInfo {
  void operator()(fi_info* info) const { fi_freeinfo(info); }
};
using InfoPtr = std::unique_ptr<fi_info, FreeInfo>;

InfoPtr Ask(const fi_info* hints) {
  fi_info* list = nullptr;
  return InfoPtr(fi_getinfo(FI_VERSION(1, 17), nullptr, nullptr, 0, hints, &list) == 0 ? list
                                                                                       : nullptr);
}

void Note(const fi_info* list, bool usable, std::vector<Provider>* providers) {
  for (const fi_info* info = list; info != nullptr; info = info->next) {
    const char* text = info->fabric_attr != nullptr ? info->fabric_attr->prov_name : nullptr;
    const std::string name = text != nullptr ? text : "?";
    const auto known = std::find_if(providers->begin(), providers->end(),
                                    [&](const Provider& each) { return each.name == name; });
    if (known == providers->end()) {
      providers->push_back({name, usable});
    } else {
      known->usable |= usable;
    }
  }
}

}  // namespace

std::vector<Provider> ListProviders() {
  std::vector<Provider> providers;
  const InfoPtr hints(fi_allocinfo());
  if (hints != nullptr) {
    hints->caps = FI_MSG | FI_RMA;
    hints->ep_attr->type = FI_EP_RDM;
    // What ferryd copes with (transports/ofi).
    hints->domain_attr->mr_mode =
        FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY | FI_MR_ENDPOINT;
    hints->mode = FI_CONTEXT | FI_CONTEXT2;
    Note(Ask(hints.get()).get(), true, &providers);
  }
  Note(Ask(nullptr).get(), false, &providers);
  return providers;
}

std::string LibfabricVersion() {
  const uint32_t version = fi_version();
  return std::to_string(FI_MAJOR(version)) + "." + std::to_string(FI_MINOR(version));
}

}  // namespace ferry::tools
