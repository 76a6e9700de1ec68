#include "tools/ferryrun/rank_servers.h"

#include <sys/random.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "common/hex_text.h"
#include "common/number_text.h"
#include "config/environment.h"
#include "tools/ferryrun/foreign_library.h"
#include "tools/ferryrun/rank_process.h"

namespace ferry::tools {
namespace {

constexpr size_t kNameSpaceBytes = 16;

uint32_t NumberOf(const std::string& name, const std::vector<std::string>& environment) {
  return NumberIn<uint32_t>(ValueOf(name, environment)).value_or(0);
}

}  // namespace

StatusOr<UniqueFd> RankServers::Open(uint32_t rank, std::vector<std::string>* environment) {
  const uint32_t app = NumberOf("FERRY_APP", *environment);
  const uint32_t universe_size =
      std::max(NumberOf("FERRY_UNIVERSE_SIZE", *environment), job_.size());
  uint32_t local_size = 0;
  uint32_t local_rank = 0;
  for (uint32_t other = 0; other < job_.size(); ++other) {
    if (job_.node_of_rank[other] == job_.node_of_rank[rank]) {
      local_rank += other < rank ? 1 : 0;
      ++local_size;
    }
  }
  std::vector<std::string> variables = {"PMI_RANK=" + std::to_string(rank),
                                        "PMI_SIZE=" + std::to_string(job_.size()),
                                        "MPI_LOCALRANKID=" + std::to_string(local_rank),
                                        "MPI_LOCALNRANKS=" + std::to_string(local_size)};
  // A program of Open MPI that is alone needs no server.
  if (job_.size() > 1) {
    pmix_.Open(rank, app, universe_size, &variables);
  }
  SetVariables(variables, environment);
  return pmi_.Open(rank, app, universe_size);
}

void RankServers::Take(const ExchangeMessage& message) {
  if (message.kind == ExchangeMessage::Kind::kWhole) {
    pmi_.Take(message);
  }
  pmix_.Take(message);
}

std::vector<ExchangeMessage> RankServers::TakeWords() {
  std::vector<ExchangeMessage> words = std::exchange(words_, {});
  for (ExchangeMessage& message : words) {
    const auto pid = pids_.find(message.rank);
    if (message.kind == ExchangeMessage::Kind::kMet && pid != pids_.end()) {
      message.data = LibrariesOf(pid->second).foreign;
      if (!message.data.empty() && LibrariesOf(pid->second, 0).foreign.empty()) {
        wrapped_.insert(message.rank);
      }
    }
  }
  // Where the program is the slot's only one, no other misses the server.
  std::erase_if(words, [this](const ExchangeMessage& message) {
    return message.kind == ExchangeMessage::Kind::kShut && !wrapped_.contains(message.rank);
  });
  return words;
}

ServedJob ServedJobOf(const control::CreateJobRequest& request, std::vector<uint32_t> node_of_rank,
                      std::string name_space, std::vector<uint32_t> nodes_here) {
  ServedJob job{.name = request.job_id(),
                .name_space = std::move(name_space),
                .node_of_rank = std::move(node_of_rank)};
  const bool alone = nodes_here.size() == static_cast<size_t>(request.node_addresses_size());
  for (const std::string& address : request.node_addresses()) {
    job.hosts.push_back(alone ? config::HostName() : address.substr(0, address.rfind(':')));
  }
  job.nodes_here = std::move(nodes_here);
  return job;
}

std::string DrawNameSpace() {
  std::array<uint8_t, kNameSpaceBytes> bytes{};
  if (getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
    std::abort();  // the kernel has no random numbers at all
  }
  return "ferry-" + HexText(bytes);
}

std::vector<std::string> EnvironmentForRanks() {
  constexpr std::string_view kOtherLaunchers[] = {"PMI_",
                                                  "PMI2_",
                                                  "PMIX_",
                                                  "HYDI_",
                                                  "OMPI_MCA_orte_",
                                                  "OMPI_MCA_ess",
                                                  "OMPI_MCA_pmix",
                                                  "OMPI_COMM_WORLD_",
                                                  "OMPI_UNIVERSE_SIZE",
                                                  "MPI_LOCAL"};
  constexpr std::string_view kSettings = "PMIX_MCA_";  // the user's own
  std::vector<std::string> environment = config::ForeignEnvironment(config::ProcessEnvironment());
  std::erase_if(environment, [&](std::string_view entry) {
    return !entry.starts_with(kSettings) &&
           std::any_of(std::begin(kOtherLaunchers), std::end(kOtherLaunchers),
                       [entry](std::string_view one) { return entry.starts_with(one); });
  });
  return environment;
}

}  // namespace ferry::tools
