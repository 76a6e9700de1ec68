#include "tools/ferryrun/allocation.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <unordered_map>
#include <utility>

#include "client/bootstrap/launched_task.h"
#include "common/counted.h"
#include "common/number_text.h"
#include "config/environment.h"
#include "tools/ferryrun/node_list.h"
#include "tools/ferryrun/program_output.h"

namespace ferry::tools {
namespace {

constexpr size_t kMostFileBytes = 16 << 20;   // names of kMostNodes hosts, with room to spare
constexpr uint64_t kMostSlots = 999'999'999;  // of a host, as on the command line
constexpr uint64_t kFluxTimeoutMs = 10'000;
constexpr size_t kHostsShown = 4;
constexpr char kWayOut[] = " (--allocation none runs the job without it)";

Status Refuse(std::string message) { return {ErrorCode::kInvalidArgument, std::move(message)}; }

// Hosts in the order in which they come first, with the sums of their slots.
class HostSlots {
 public:
  Status Add(std::string_view name, uint64_t slots) {
    if (!IsHostName(name)) {
      return Refuse(Quote(name) + " names no host");
    }
    const auto [known, is_new] = index_.emplace(name, hosts_.size());
    if (is_new) {
      if (hosts_.size() == kMostNodes) {
        return Refuse("it names more than " + std::to_string(kMostNodes) + " hosts");
      }
      hosts_.push_back({.name = std::string(name), .slots = 0});
    }
    uint64_t& sum = hosts_[known->second].slots;
    if (slots == 0 || slots > kMostSlots - sum) {
      return Refuse(Quote(name) + " has no number of slots from 1 to " +
                    std::to_string(kMostSlots));
    }
    sum += slots;
    return {};
  }
  StatusOr<std::vector<Host>> Take() {
    return hosts_.empty() ? StatusOr<std::vector<Host>>(Refuse("it names no host"))
                          : std::move(hosts_);
  }

 private:
  std::vector<Host> hosts_;
  std::unordered_map<std::string, size_t> index_;
};

// Calls `take(words)` for each line that has any.
template <typename Take>
Status ForEachLine(std::string_view text, Take&& take) {
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    if (const auto words = WordsOf(text.substr(begin, end - begin)); !words.empty()) {
      FERRY_RETURN_IF_ERROR(take(words));
    }
    begin = end + 1;
  }
  return {};
}

Status AddPair(std::string_view name, std::string_view slots, HostSlots* hosts) {
  return hosts->Add(name, NumberIn<uint64_t>(slots).value_or(0));
}

StatusOr<std::string> ReadWhole(const std::string& path) {
  struct stat info {};
  if (stat(path.c_str(), &info) != 0) {
    return StatusFromErrno(errno, "cannot read " + Quote(path));
  }
  if (!S_ISREG(info.st_mode) || static_cast<uint64_t>(info.st_size) > kMostFileBytes) {
    return Refuse(Quote(path) + " is no file of " + std::to_string(kMostFileBytes) +
                  " bytes at most");
  }
  errno = 0;
  std::ifstream file(path);
  std::string text(static_cast<size_t>(info.st_size), '\0');
  file.read(text.data(), info.st_size);
  if (!file.is_open() || file.bad()) {
    return StatusFromErrno(errno != 0 ? errno : EIO, "cannot read " + Quote(path));
  }
  text.resize(static_cast<size_t>(file.gcount()));
  return text;
}

// The error of a variable's value.
Status About(std::string_view variable, const Status& status) {
  return {status.code(), std::string(variable) + ": " + status.message() + kWayOut};
}

// An allocation whose hosts are in a file that a variable names.
StatusOr<std::optional<Allocation>> FromFile(
    const char* system, const char* variable, std::string_view path,
    StatusOr<std::vector<Host>> (*read)(std::string_view text),
    std::vector<const char*> launchers) {
  const StatusOr<std::string> text = ReadWhole(std::string(path));
  StatusOr<std::vector<Host>> hosts = text.ok() ? read(*text) : text.status();
  if (!hosts.ok()) {
    return About(variable, hosts.status());
  }
  return std::optional<Allocation>(Allocation{.system = system,
                                              .source = variable,
                                              .hosts = std::move(*hosts),
                                              .has_aliases = true,
                                              .launchers = std::move(launchers)});
}

// ---- Batch systems: nothing, if this is no job of theirs ----

StatusOr<std::optional<Allocation>> FindFlux(const char* const* environment, bool) {
  constexpr char kSource[] = "resource.R of Flux";
  if (!client::IsInFluxInstance(environment)) {
    return std::optional<Allocation>();
  }
  const StatusOr<std::string> answer =
      OutputOf({"flux", "kvs", "get", "resource.R"}, kMostFileBytes, kFluxTimeoutMs);
  StatusOr<std::vector<Host>> hosts =
      answer.ok() ? ReadFluxResources(*answer) : StatusOr<std::vector<Host>>(answer.status());
  if (!hosts.ok()) {
    return About(kSource, hosts.status());
  }
  return std::optional<Allocation>(Allocation{.system = "Flux",
                                              .source = kSource,
                                              .hosts = std::move(*hosts),
                                              .has_aliases = true,
                                              .launchers = {"flux"}});
}

// The hosts of a list with the tasks of each.
StatusOr<std::vector<Host>> HostsOfSlurm(const char* const* environment, const char* list,
                                         const char* counts) {
  StatusOr<std::vector<std::string>> names =
      ExpandNodeList(*config::FindVariable(environment, list));
  if (!names.ok()) {
    return About(list, names.status());
  }
  const auto tasks = config::FindVariable(environment, counts);
  const StatusOr<std::vector<uint64_t>> slots =
      tasks ? ExpandCounts(*tasks, names->size()) : std::vector<uint64_t>(names->size(), 1);
  if (!slots.ok()) {
    return About(counts, slots.status());
  }
  HostSlots hosts;
  for (size_t i = 0; i < names->size(); ++i) {
    if (const Status added = hosts.Add((*names)[i], (*slots)[i]); !added.ok()) {
      return About(list, added);
    }
  }
  return hosts.Take();
}

StatusOr<std::optional<Allocation>> FindSlurm(const char* const* environment, bool has_terminal) {
  const bool of_step = client::IsInShellOfSrun(environment, has_terminal);
  const char* const list = of_step ? "SLURM_STEP_NODELIST" : "SLURM_JOB_NODELIST";
  if (!config::FindVariable(environment, list)) {
    return std::optional<Allocation>();
  }
  StatusOr<std::vector<Host>> hosts = HostsOfSlurm(
      environment, list, of_step ? "SLURM_STEP_TASKS_PER_NODE" : "SLURM_TASKS_PER_NODE");
  FERRY_RETURN_IF_ERROR(hosts.status());
  Allocation allocation{.system = "Slurm",
                        .source = list,
                        .hosts = std::move(*hosts),
                        .name_of_node = std::string(
                            config::FindVariable(environment, "SLURMD_NODENAME").value_or("")),
                        .launchers = {"srun"}};
  if (const auto tasks = config::FindVariable(environment, "SLURM_NTASKS")) {
    allocation.ranks = NumberIn<uint64_t>(*tasks);
    if (allocation.ranks.value_or(0) == 0) {
      return About("SLURM_NTASKS", Refuse(Quote(*tasks) + " is no number of tasks"));
    }
  }
  return std::optional<Allocation>(std::move(allocation));
}

StatusOr<std::optional<Allocation>> FindPbs(const char* const* environment, bool) {
  const auto path = config::FindVariable(environment, "PBS_NODEFILE");
  return path ? FromFile("PBS", "PBS_NODEFILE", *path, ReadSlotLines, {"pbs_tmrsh", "pbsdsh"})
              : std::optional<Allocation>();
}

StatusOr<std::optional<Allocation>> FindLsf(const char* const* environment, bool) {
  if (const auto path = config::FindVariable(environment, "LSB_DJOB_HOSTFILE")) {
    return FromFile("LSF", "LSB_DJOB_HOSTFILE", *path, ReadSlotLines, {"blaunch"});
  }
  const auto pairs = config::FindVariable(environment, "LSB_MCPU_HOSTS");
  if (!pairs) {
    return std::optional<Allocation>();
  }
  StatusOr<std::vector<Host>> hosts = ReadPairs(*pairs);
  if (!hosts.ok()) {
    return About("LSB_MCPU_HOSTS", hosts.status());
  }
  return std::optional<Allocation>(Allocation{.system = "LSF",
                                              .source = "LSB_MCPU_HOSTS",
                                              .hosts = std::move(*hosts),
                                              .has_aliases = true,
                                              .launchers = {"blaunch"}});
}

StatusOr<std::optional<Allocation>> FindGridEngine(const char* const* environment, bool) {
  const auto path = config::FindVariable(environment, "PE_HOSTFILE");
  return path ? FromFile("Grid Engine", "PE_HOSTFILE", *path, ReadCountLines, {"qrsh"})
              : std::optional<Allocation>();
}

struct BatchSystem {
  std::string_view option;
  StatusOr<std::optional<Allocation>> (*find)(const char* const* environment, bool has_terminal);
  const char* variables;  // by which it is found
};
// Flux comes first: its brokers may run in a job of another one.
constexpr BatchSystem kBatchSystems[] = {
    {"flux", FindFlux, "FLUX_URI and FLUX_ENCLOSING_ID"},
    {"slurm", FindSlurm, "SLURM_JOB_NODELIST"},
    {"pbs", FindPbs, "PBS_NODEFILE"},
    {"lsf", FindLsf, "LSB_DJOB_HOSTFILE or LSB_MCPU_HOSTS"},
    {"gridengine", FindGridEngine, "PE_HOSTFILE"},
};

// True if ferryrun is a task of a launcher, or a rank: its hosts are for the others as well.
bool IsOneOfSeveral(const char* const* environment, bool has_terminal) {
  const config::Option* const job = config::FindOption("job_id");
  return client::FindLaunchedTask(environment, has_terminal).has_value() ||
         config::FindVariable(environment, config::EnvironmentVariable(*job)).has_value();
}

const Host* FindHost(const std::vector<Host>& hosts, const std::string& name) {
  const auto found = std::find_if(hosts.begin(), hosts.end(), [&name](const Host& host) {
    return AreSameHost(host.name, name);
  });
  return found == hosts.end() ? nullptr : &*found;
}

std::string Listed(const std::vector<Host>& hosts) {
  std::string text;
  for (size_t i = 0; i < std::min(hosts.size(), kHostsShown); ++i) {
    text += (i == 0 ? "" : ", ") + hosts[i].name + ":" + std::to_string(hosts[i].slots);
  }
  return hosts.size() <= kHostsShown
             ? text
             : text + " and " + std::to_string(hosts.size() - kHostsShown) + " more";
}

}  // namespace

StatusOr<std::vector<Host>> ReadSlotLines(std::string_view text) {
  HostSlots hosts;
  FERRY_RETURN_IF_ERROR(ForEachLine(text, [&hosts](const std::vector<std::string_view>& words) {
    return words.size() == 1 ? hosts.Add(words[0], 1)
                             : Refuse(Quote(words[1]) + " follows the name of a host");
  }));
  return hosts.Take();
}

StatusOr<std::vector<Host>> ReadCountLines(std::string_view text) {
  HostSlots hosts;
  FERRY_RETURN_IF_ERROR(ForEachLine(text, [&hosts](const std::vector<std::string_view>& words) {
    return AddPair(words[0], words.size() > 1 ? words[1] : "", &hosts);
  }));
  return hosts.Take();
}

StatusOr<std::vector<Host>> ReadPairs(std::string_view text) {
  const std::vector<std::string_view> words = WordsOf(text);
  HostSlots hosts;
  for (size_t i = 0; i < words.size(); i += 2) {
    FERRY_RETURN_IF_ERROR(AddPair(words[i], i + 1 < words.size() ? words[i + 1] : "", &hosts));
  }
  return hosts.Take();
}

StatusOr<std::vector<Host>> ReadFluxResources(std::string_view text) {
  using Json = nlohmann::json;
  const Status no_resources = Refuse(Quote(text) + " is no resource set of version 1");
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  const auto part = [](const Json& whole, const char* name) {
    return whole.is_object() && whole.contains(name) ? whole[name] : Json();
  };
  const Json execution = part(json, "execution");
  const Json nodes = part(execution, "nodelist");
  const Json entries = part(execution, "R_lite");
  if (part(json, "version") != 1 || !nodes.is_array() || !entries.is_array()) {
    return no_resources;
  }
  std::vector<std::string> names;
  for (const Json& node : nodes) {
    const StatusOr<std::vector<std::string>> more =
        ExpandNodeList(node.is_string() ? node.get<std::string>() : "");
    FERRY_RETURN_IF_ERROR(more.status());
    names.insert(names.end(), more->begin(), more->end());
    if (names.size() > kMostNodes) {
      return Refuse("it names more than " + std::to_string(kMostNodes) + " hosts");
    }
  }
  std::map<uint64_t, uint64_t> cores;  // by the rank of the node's broker
  for (const Json& entry : entries) {
    const Json ranks = part(entry, "rank");
    const Json of_each = part(part(entry, "children"), "core");
    if (!ranks.is_string() || !of_each.is_string()) {
      return no_resources;
    }
    const auto brokers = ExpandIds(ranks.get<std::string>());
    FERRY_RETURN_IF_ERROR(brokers.status());
    const auto ids = ExpandIds(of_each.get<std::string>());
    FERRY_RETURN_IF_ERROR(ids.status());
    for (const uint64_t broker : *brokers) {
      cores[broker] += ids->size();
    }
  }
  if (cores.size() != names.size()) {
    return Refuse("it has resources of " + Counted(static_cast<int64_t>(cores.size()), "node") +
                  " and names of " + std::to_string(names.size()));
  }
  HostSlots hosts;
  size_t node = 0;
  for (const auto& [broker, count] : cores) {  // hosts are named in the order of their brokers
    FERRY_RETURN_IF_ERROR(hosts.Add(names[node++], count));
  }
  return hosts.Take();
}

StatusOr<std::optional<Allocation>> FindAllocation(const char* const* environment,
                                                   std::string_view wanted, bool has_terminal) {
  const bool any = wanted == "auto";
  if (wanted == "none" || (any && IsOneOfSeveral(environment, has_terminal))) {
    return std::optional<Allocation>();
  }
  for (const BatchSystem& system : kBatchSystems) {
    if (!any && system.option != wanted) {
      continue;
    }
    StatusOr<std::optional<Allocation>> found = system.find(environment, has_terminal);
    if (!found.ok() || found->has_value()) {
      return found;
    }
    if (!any) {
      return Refuse("--allocation " + std::string(wanted) +
                    ": ferryrun runs in none of these, for there is no " + system.variables);
    }
  }
  return std::optional<Allocation>();
}

std::optional<std::string> NameOfThisHost(
    const Allocation& allocation, const std::string& own_name,
    const std::function<bool(const std::string&)>& is_this_host) {
  const std::vector<Host>& hosts = allocation.hosts;
  for (const std::string& name : {allocation.name_of_node, own_name}) {
    if (const Host* host = name.empty() ? nullptr : FindHost(hosts, name); host != nullptr) {
      return host->name;
    }
  }
  const auto found = allocation.has_aliases
                         ? std::find_if(hosts.begin(), hosts.end(),
                                        [&](const Host& host) { return is_this_host(host.name); })
                         : hosts.end();
  return found == hosts.end() ? std::nullopt : std::optional(found->name);
}

Status TakeAllocation(const Allocation& allocation, const std::optional<std::string>& here,
                      const std::function<bool(const std::string&)>& is_this_host,
                      Arguments* arguments) {
  uint64_t slots = 0;  // of the hosts of the last program
  for (Part& part : arguments->parts) {
    slots = 0;
    std::vector<Host> hosts;
    for (const Host& named : part.hosts) {
      const Host* host = FindHost(allocation.hosts, named.name);
      if (host == nullptr && here && is_this_host(named.name)) {
        host = FindHost(allocation.hosts, *here);
      }
      if (host == nullptr) {
        return Refuse("-host " + named.name + ": " + Describe(allocation) +
                      "; it is none of them (--allocation none takes other hosts)");
      }
      if (std::find(hosts.begin(), hosts.end(), *host) == hosts.end()) {
        hosts.push_back(*host);
      }
    }
    part.hosts = std::move(hosts);
  }
  arguments->hosts = allocation.hosts;
  Part& part = arguments->parts.front();
  if (part.ranks || arguments->parts.size() > 1) {
    return {};
  }
  const std::vector<Host>& hosts = part.hosts.empty() ? allocation.hosts : part.hosts;
  for (const Host& host : hosts) {
    slots += host.slots;
  }
  if (arguments->mapping.by == Mapping::By::kCount) {
    slots = arguments->mapping.count * hosts.size();
  } else if (part.hosts.empty()) {
    slots = allocation.ranks.value_or(slots);
  }
  part.ranks = slots;
  return {};
}

std::string Describe(const Allocation& allocation) {
  return Counted(static_cast<int64_t>(allocation.hosts.size()), "host") + " of " +
         allocation.system + "'s allocation (" + allocation.source +
         "): " + Listed(allocation.hosts);
}

}  // namespace ferry::tools
