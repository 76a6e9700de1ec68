#include "daemon/links/link_policy.h"

#include <algorithm>

#include "config/options.h"
#include "transports/api/transport.h"

namespace ferry::daemon {
namespace {

using transport::kTcpProvider;

// A link gives way to another one after being idle for this part of direct_link_idle_ms.
constexpr uint64_t kIdlePart = 10;
// With more ranks for each core ferryd, which does the work of all in one turn, is faster than
// ranks that each need the core to see what has come (docs/results/footprint.md).
constexpr uint32_t kRanksPerCore = 4;

Status AllowedBy(const config::Options& options, const std::string& provider) {
  if (options.direct_links == "off") {
    return {ErrorCode::kConfiguration, "the option direct_links is off"};
  }
  if (options.direct_links == "always") {
    return {};
  }
  if (!options.fabric_rails.empty()) {
    return {ErrorCode::kUnsupported,
            "the node has several NICs (fabric_rails), of which a direct link would use one; with "
            "direct_links = always there are links all the same"};
  }
  if (provider != kTcpProvider && options.direct_link_provider == "auto") {
    return {
        ErrorCode::kUnsupported,
        "direct links over " + provider +
            " have not been tried on real NICs yet; direct_links = always gives them all the same"};
  }
  return {};
}

// Chooses Ferry's own sockets where the daemons' packets go over the kernel's sockets: they are
// fastest there.
std::string ProviderFor(const config::Options& options, const std::string& provider) {
  if (options.direct_link_provider != "auto") {
    return options.direct_link_provider;
  }
  const bool is_tcp = provider == "net" || provider == "sockets" || provider == "tcp" ||
                      provider.starts_with("tcp;");
  return is_tcp ? kTcpProvider : provider;
}

// With a provider of libfabric links take the NIC nearest to the rank, because each NIC reaches all
// others. Networks of sockets may be separate, so links over sockets take the first.
std::vector<LinkPolicy::Nic> NicsFor(const config::Options& options, const std::string& provider,
                                     const std::vector<NicStatistics>& nics) {
  if (provider == kTcpProvider || provider != nics.front().provider) {
    return {{options.fabric_address, ""}};
  }
  std::vector<LinkPolicy::Nic> all;
  for (const NicStatistics& nic : nics) {
    all.push_back({nic.source_address, nic.domain});
  }
  return all;
}

}  // namespace

LinkPolicy LinkPolicyFrom(const config::Options& options, const std::vector<NicStatistics>& nics,
                          uint32_t cores) {
  const bool always = options.direct_links == "always";
  LinkPolicy policy;
  policy.provider = ProviderFor(options, nics.front().provider);
  policy.allowed = AllowedBy(options, policy.provider);
  policy.max_local_ranks = always ? 0 : kRanksPerCore * std::max(1U, cores);
  policy.limits = {options.direct_links_per_rank, options.direct_links_per_job,
                   options.direct_link_idle_ms * 1'000'000 / kIdlePart};
  policy.min_messages = always ? 1 : options.direct_link_messages;
  policy.min_bytes = always ? 1 : options.direct_link_bytes;
  policy.idle_ms = always ? 0 : options.direct_link_idle_ms;
  policy.operation_timeout_ms = options.operation_timeout_ms;
  policy.peer_timeout_ms = options.peer_timeout_ms;
  policy.nics = NicsFor(options, policy.provider, nics);
  return policy;
}

Status MayHaveLinks(const LinkPolicy& policy, uint32_t local_ranks) {
  FERRY_RETURN_IF_ERROR(policy.allowed);
  if (policy.max_local_ranks != 0 && local_ranks > policy.max_local_ranks) {
    return {ErrorCode::kUnsupported,
            "the job has " + std::to_string(local_ranks) + " ranks on this node; for more than " +
                std::to_string(policy.max_local_ranks) + " (" + std::to_string(kRanksPerCore) +
                " for each core) the daemons are faster; with direct_links = always there are "
                "links all the same"};
  }
  return {};
}

}  // namespace ferry::daemon
