#include "tools/ferryrun/rank_commands.h"

#include <algorithm>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "config/environment.h"
#include "tools/ferryrun/binary_interface.h"
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
    : arguments_(arguments), layout_(layout), job_(job), environment_(EnvironmentForRanks()) {
  std::vector<uint64_t> ranks(arguments.parts.size());
  for (const uint32_t part : layout.part_of_rank) {
    ++ranks[part];
  }
  for (uint32_t part = 0; part < ranks.size(); ++part) {
    common_.push_back(CommonOf(part, ranks[part], options));
  }
}

RankCommands::Common RankCommands::CommonOf(uint32_t part, uint64_t ranks,
                                            const config::Options& options) const {
  config::Options own = options;
  own.app = part;
  own.app_size = ranks;
  own.universe_size = layout_.slots == 0 ? 0 : std::max<uint64_t>(layout_.slots, job_.size());
  Common common{.variables = job_.Environment(std::move(own)), .names_of_user = {}};
  for (const auto* users : {&arguments_.variables, &arguments_.parts[part].variables}) {
    SetVariables(*users, &common.variables);
    for (const std::string& entry : *users) {
      common.names_of_user.push_back(entry.substr(0, entry.find('=')));
    }
  }
  return common;
}

std::vector<std::string> RankCommands::OwnOf(uint32_t rank) const {
  std::vector<std::string> own = job_.PlaceOf(rank);
  const std::vector<std::string>& users = common_[layout_.part_of_rank[rank]].names_of_user;
  std::erase_if(own, [&users](const std::string& entry) {
    return std::find(users.begin(), users.end(), entry.substr(0, entry.find('='))) != users.end();
  });
  return own;
}

RankCommand RankCommands::Here(uint32_t rank) const {
  RankCommand command{.rank = rank,
                      .program = PartOf(rank).program,
                      .environment = environment_,
                      .directory = PartOf(rank).directory};
  SetVariables(common_[layout_.part_of_rank[rank]].variables, &command.environment);
  SetVariables(OwnOf(rank), &command.environment);
  return command;
}

AgentJob RankCommands::ForAgents() const {
  AgentJob all{.request = job_.CommonRequest().SerializeAsString(),
               .node_of_rank = job_.node_of_rank(),
               .parts = {}};
  std::error_code ignored;
  for (size_t index = 0; index < arguments_.parts.size(); ++index) {
    const Part& part = arguments_.parts[index];
    std::vector<std::string> variables = environment_;
    std::erase_if(variables, StaysHere);
    SetVariables(common_[index].variables, &variables);
    all.parts.push_back({.program = part.program,
                         .variables = std::move(variables),
                         .directory = part.directory.empty()
                                          ? std::filesystem::current_path(ignored).string()
                                          : part.directory,
                         .must = !part.directory.empty()});
  }
  return all;
}

AgentRank RankCommands::There(uint32_t rank) const {
  return {.part = layout_.part_of_rank[rank], .variables = OwnOf(rank)};
}

std::vector<std::string> RankCommands::ProgramsHere() const {
  return Programs([](const std::string&, const RankCommand&) { return true; });
}

std::vector<std::string> RankCommands::UnservedHere() const {
  return Programs([](const std::string& path, const RankCommand& command) {
    return !IsServed(path, command.environment);
  });
}

std::vector<std::string> RankCommands::Programs(
    const std::function<bool(const std::string&, const RankCommand&)>& is_wanted) const {
  std::vector<std::string> programs;
  for (uint32_t rank = 0; rank < job_.size(); ++rank) {
    const bool first_of_part =
        rank == 0 || layout_.part_of_rank[rank] != layout_.part_of_rank[rank - 1];
    if (first_of_part) {
      const RankCommand command = Here(rank);
      const StatusOr<std::string> path =
          FindProgram(command.program[0], ValueOf("PATH", command.environment), command.directory);
      programs.push_back(path.ok() && is_wanted(*path, command) ? *path : "");
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
