#include "tools/ferryrun/rank_commands.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "config/environment.h"
#include "tools/ferryrun/process.h"
#include "tools/ferryrun/rank_servers.h"

namespace ferry::tools {
namespace {

// Variables that say something of this host or login only, and so do not travel to others.
bool StaysHere(std::string_view entry) {
  constexpr std::string_view kNames[] = {"HOSTNAME", "DISPLAY", "XAUTHORITY",
                                         "PWD",      "OLDPWD",  "SHLVL",
                                         "_",        "TMPDIR",  "SLURMD_NODENAME"};
  // The batch system makes the NICs' services (SLINGSHOT_SVC_IDS) on each node.
  constexpr std::string_view kPrefixes[] = {"XDG_", "SSH_", "DBUS_", "SLINGSHOT_"};
  const std::string_view name = entry.substr(0, entry.find('='));
  return std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames) ||
         std::any_of(std::begin(kPrefixes), std::end(kPrefixes),
                     [name](std::string_view prefix) { return name.starts_with(prefix); });
}

}  // namespace

std::vector<std::string> EnvironmentOf(const Arguments& arguments, const Part& part) {
  std::vector<std::string> environment = config::ForeignEnvironment(config::ProcessEnvironment());
  SetVariables(arguments.variables, &environment);
  SetVariables(part.variables, &environment);
  return environment;
}

RankCommands::RankCommands(const Arguments& arguments, const JobLayout& layout,
                           const config::Options& options, const Job& job)
    : arguments_(arguments),
      layout_(layout),
      options_(options),
      job_(job),
      ranks_of_part_(arguments.parts.size()) {
  for (const uint32_t part : layout.part_of_rank) {
    ++ranks_of_part_[part];
  }
}

std::vector<std::string> RankCommands::VariablesOf(uint32_t rank) const {
  config::Options options = options_;
  options.app = layout_.part_of_rank[rank];
  options.app_size = ranks_of_part_[options.app];
  options.universe_size = layout_.slots == 0 ? 0 : std::max<uint64_t>(layout_.slots, job_.size());
  std::vector<std::string> variables = job_.Environment(rank, std::move(options));
  SetVariables(arguments_.variables, &variables);
  SetVariables(PartOf(rank).variables, &variables);
  return variables;
}

RankCommand RankCommands::Here(uint32_t rank) const {
  RankCommand command{.rank = rank,
                      .program = PartOf(rank).program,
                      .environment = EnvironmentForRanks(),
                      .directory = PartOf(rank).directory};
  SetVariables(VariablesOf(rank), &command.environment);
  return command;
}

std::vector<std::string> RankCommands::VariablesThere(uint32_t rank) const {
  std::vector<std::string> variables = EnvironmentForRanks();
  std::erase_if(variables, StaysHere);
  SetVariables(VariablesOf(rank), &variables);
  return variables;
}

AgentJob RankCommands::ForAgents() const {
  AgentJob all{.request = job_.CommonRequest().SerializeAsString(),
               .node_of_rank = job_.node_of_rank(),
               .parts = {}};
  std::error_code ignored;
  for (const Part& part : arguments_.parts) {
    all.parts.push_back({.program = part.program,
                         .variables = {},
                         .directory = part.directory.empty()
                                          ? std::filesystem::current_path(ignored).string()
                                          : part.directory,
                         .must = !part.directory.empty()});
  }
  // Variables that each rank of the part has.
  std::vector<bool> seen(all.parts.size());
  for (uint32_t rank = 0; rank < job_.size(); ++rank) {
    const uint32_t part = layout_.part_of_rank[rank];
    if (!layout_.nodes[layout_.node_of_rank[rank]].remote) {
      continue;
    }
    std::vector<std::string> variables = VariablesThere(rank);
    std::vector<std::string>& common = all.parts[part].variables;
    if (!seen[part]) {
      seen[part] = true;
      common = std::move(variables);
      continue;
    }
    const std::set<std::string> own(variables.begin(), variables.end());
    std::erase_if(common, [&own](const std::string& entry) { return !own.contains(entry); });
  }
  return all;
}

AgentRank RankCommands::There(uint32_t rank, const AgentJob& job) const {
  const uint32_t part = layout_.part_of_rank[rank];
  const std::vector<std::string>& common = job.parts[part].variables;
  const std::set<std::string_view> known(common.begin(), common.end());
  std::vector<std::string> variables = VariablesThere(rank);
  std::erase_if(variables, [&known](const std::string& entry) { return known.contains(entry); });
  return {.part = part, .variables = std::move(variables)};
}

std::vector<std::string> RankCommands::ProgramsHere() const {
  std::vector<std::string> programs;
  for (uint32_t rank = 0; rank < job_.size(); ++rank) {
    const bool first_of_part =
        rank == 0 || layout_.part_of_rank[rank] != layout_.part_of_rank[rank - 1];
    if (first_of_part) {
      const RankCommand command = Here(rank);
      const StatusOr<std::string> path =
          FindProgram(command.program[0], ValueOf("PATH", command.environment), command.directory);
      programs.push_back(path.ok() ? *path : "");
    }
  }
  return programs;
}

Status CheckPrograms(const Arguments& arguments, const JobLayout& layout) {
  for (size_t rank = 0; rank < layout.part_of_rank.size(); ++rank) {
    const bool first_of_part =
        rank == 0 || layout.part_of_rank[rank] != layout.part_of_rank[rank - 1];
    if (layout.nodes[layout.node_of_rank[rank]].remote || !first_of_part) {
      continue;
    }
    const Part& part = arguments.parts[layout.part_of_rank[rank]];
    std::error_code error;
    if (!part.directory.empty() && !std::filesystem::is_directory(part.directory, error)) {
      return {ErrorCode::kInvalidArgument, "cannot run '" + part.program[0] +
                                               "' in the directory '" + part.directory +
                                               "': there is no such directory"};
    }
    const std::string path = ValueOf("PATH", EnvironmentOf(arguments, part));
    FERRY_RETURN_IF_ERROR(FindProgram(part.program[0], path, part.directory).status());
  }
  return {};
}

}  // namespace ferry::tools
