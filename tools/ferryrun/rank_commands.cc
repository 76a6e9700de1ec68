#include "tools/ferryrun/rank_commands.h"

#include <algorithm>
#include <filesystem>
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

std::vector<std::string> RankCommands::VariablesOf(uint32_t rank) const {
  config::Options options = options_;
  options.app = layout_.part_of_rank[rank];
  options.app_size = static_cast<uint64_t>(
      std::count(layout_.part_of_rank.begin(), layout_.part_of_rank.end(), options.app));
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

AgentRank RankCommands::There(uint32_t rank) const {
  const Part& part = PartOf(rank);
  std::vector<std::string> variables = EnvironmentForRanks();
  std::erase_if(variables, StaysHere);
  SetVariables(VariablesOf(rank), &variables);
  std::error_code ignored;
  return {.program = part.program,
          .variables = std::move(variables),
          .directory = part.directory.empty() ? std::filesystem::current_path(ignored).string()
                                              : part.directory,
          .must = !part.directory.empty()};
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

}  // namespace ferry::tools
