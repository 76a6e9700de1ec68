#include "tools/ferryrun/launchers.h"

#include <algorithm>
#include <iterator>
#include <sstream>
#include <utility>

#include "config/environment.h"
#include "tools/ferryrun/agent_call.h"
#include "tools/ferryrun/hosts.h"
#include "tools/ferryrun/launcher_process.h"
#include "tools/ferryrun/node_list.h"
#include "tools/ferryrun/process.h"
#include "tools/ferryrun/program_output.h"

namespace ferry::tools {
namespace {

using Words = std::vector<std::string>;

constexpr size_t kMostListBytes = 16 << 20;
constexpr uint64_t kFluxTimeoutMs = 10'000;

struct Launcher {
  std::string_view name;
  const char* variable;  // that a job has in which it works; null: it works anywhere
  bool starts_all;       // by one call
  bool has_streams;      // an agent may be reached by them
};
constexpr Launcher kLaunchers[] = {
    {"ssh", nullptr, false, true},           {"srun", nullptr, true, true},
    {"qrsh", nullptr, false, true},          {"blaunch", "LSB_JOBID", true, true},
    {"pbs_tmrsh", kPbsSecret, false, false}, {"pbsdsh", kPbsSecret, false, false},
    {"flux", "FLUX_URI", true, false},       {"none", nullptr, false, true},
};

const Launcher& Find(std::string_view name) {
  const auto* const found =
      std::find_if(std::begin(kLaunchers), std::end(kLaunchers),
                   [name](const Launcher& launcher) { return launcher.name == name; });
  return found == std::end(kLaunchers) ? kLaunchers[0] : *found;
}

std::string Quoted(const std::string& word) {
  const bool plain = !word.empty() && std::all_of(word.begin(), word.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("/._-=:,+@%").find(c) != std::string_view::npos;
  });
  if (plain) {
    return word;
  }
  std::string quoted = "'";
  for (const char c : word) {
    quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  }
  return quoted + "'";
}

// ---- One call for all hosts ---------------------------------------------------------------------

Words StepOfSlurm(const Words& hosts) {
  const std::string count = std::to_string(hosts.size());
  return {"srun",
          "--nodes=" + count,
          "--ntasks=" + count,
          "--ntasks-per-node=1",
          "--nodelist=" + ShortNodeList(hosts),
          "--overlap",
          "--input=none",
          "--kill-on-bad-exit=0",
          "--no-kill",
          "--wait=0",
          "--mpi=none",
          "--export=ALL",
          "--cpu-bind=none"};
}

// Without a shell there, words arrive as they are.
Words TasksOfLsf(const Words& hosts) {
  std::string list;
  for (const std::string& host : hosts) {
    list += (list.empty() ? "" : " ") + host;
  }
  return {"blaunch", "-n", "-z", list, "-no-shell"};
}

// Flux knows hosts by the ranks of their brokers. The directory is one that is everywhere: without
// it, flux exec wants that of this process.
StatusOr<Words> ProcessesOfFlux(const Words& hosts) {
  const StatusOr<std::string> list =
      OutputOf({"flux", "getattr", "hostlist"}, kMostListBytes, kFluxTimeoutMs);
  FERRY_RETURN_IF_ERROR(list.status());
  const StatusOr<Words> brokers = ExpandNodeList(Trimmed(*list));
  if (!brokers.ok()) {
    return Status(brokers.status().code(), "flux getattr hostlist: " + brokers.status().message());
  }
  std::string ranks;
  for (const std::string& host : hosts) {
    const auto broker =
        std::find_if(brokers->begin(), brokers->end(),
                     [&host](const std::string& name) { return AreSameHost(name, host); });
    if (broker == brokers->end()) {
      return Status(ErrorCode::kInvalidArgument,
                    "host " + host + " has no broker of the Flux instance around ferryrun, which " +
                        "flux exec needs (--launcher ssh reaches others)");
    }
    ranks += (ranks.empty() ? "" : ",") + std::to_string(broker - brokers->begin());
  }
  return Words{"flux", "exec", "--rank=" + ranks, "--noinput", "--dir=/"};
}

}  // namespace

StatusOr<std::vector<std::string>> LauncherCommand(const config::Options& options,
                                                   const std::string& host,
                                                   const std::string& program,
                                                   const std::vector<std::string>& arguments) {
  const bool has_rsh = !options.rsh.empty();
  if (options.launcher == "none") {
    return Status(ErrorCode::kConfiguration,
                  host +
                      " is another host, and launcher is none (use --launcher ssh, or the one "
                      "of the batch system)");
  }
  if (!has_rsh && !Find(options.launcher).has_streams) {
    return Status(ErrorCode::kConfiguration,
                  options.launcher + " carries no streams of an agent on " + host);
  }
  // srun and blaunch pass words on as they are; the others give them to a shell there.
  bool has_shell = false;
  std::vector<std::string> command;
  if (!has_rsh && options.launcher == "srun") {
    // Slurm would keep what an agent says until a line of it ends.
    command = {"srun",       "--nodes=1",    "--ntasks=1",     "--nodelist=" + host,
               "--overlap",  "--input=0",    "--unbuffered",   "--kill-on-bad-exit",
               "--mpi=none", "--export=ALL", "--cpu-bind=none"};
  } else if (!has_rsh && options.launcher == "blaunch") {
    command = {"blaunch", host, "-no-shell"};
  } else {
    has_shell = true;
    const char* const usual =
        options.launcher == "qrsh" ? "qrsh -inherit" : "ssh -x -o BatchMode=yes";
    std::istringstream words(has_rsh ? options.rsh : usual);
    for (std::string word; words >> word;) {
      command.push_back(word);
    }
    if (command.empty()) {
      return Status(ErrorCode::kConfiguration,
                    "rsh is \"" + options.rsh + "\", which is no command");
    }
    command.push_back(host);
  }
  command.push_back(has_shell ? Quoted(program) : program);
  for (const std::string& argument : arguments) {
    command.push_back(has_shell ? Quoted(argument) : argument);
  }
  return command;
}

bool AgentsCall(const config::Options& options, size_t hosts, uint64_t radix) {
  const Launcher& launcher = Find(options.launcher);
  return options.rsh.empty() && hosts > 0 &&
         (!launcher.has_streams || (launcher.starts_all && radix > 0 && hosts > 1));
}

StatusOr<CallCommands> PlanCalls(const config::Options& options,
                                 const std::vector<std::string>& hosts, const std::string& program,
                                 const char* const* environment) {
  const Launcher& launcher = Find(options.launcher);
  CallCommands plan{.commands = {},
                    .may_be_each = launcher.has_streams,
                    .is_step_of_slurm = launcher.name == "srun"};
  if (launcher.starts_all) {
    StatusOr<Words> command = launcher.name == "flux"      ? ProcessesOfFlux(hosts)
                              : launcher.name == "blaunch" ? TasksOfLsf(hosts)
                                                           : StepOfSlurm(hosts);
    FERRY_RETURN_IF_ERROR(command.status());
    plan.commands.push_back(std::move(*command));
  } else {
    plan.secret_of_job = config::FindVariable(environment, kPbsSecret).value_or("");
    if (plan.secret_of_job.empty()) {
      return Status(ErrorCode::kConfiguration, options.launcher +
                                                   " works in a job of PBS, and here is no " +
                                                   kPbsSecret + " (--launcher ssh does without)");
    }
    for (const std::string& host : hosts) {
      // pbsdsh takes no word after -- for a flag of its own.
      plan.commands.push_back(launcher.name == "pbsdsh" ? Words{"pbsdsh", "-h", host, "--"}
                                                        : Words{"pbs_tmrsh", host});
    }
  }
  for (Words& command : plan.commands) {
    command.push_back(program);
    command.emplace_back(kCallFlag);
  }
  return plan;
}

std::string WhyUnusable(std::string_view launcher, const char* const* environment) {
  const auto path = config::FindVariable(environment, "PATH");
  if (!FindProgram(std::string(launcher), path.value_or("")).ok()) {
    return "there is no " + std::string(launcher);
  }
  const char* const variable = Find(launcher).variable;
  return variable == nullptr || config::FindVariable(environment, variable)
             ? ""
             : std::string(launcher) + " needs " + variable + ", which is not set";
}

}  // namespace ferry::tools
