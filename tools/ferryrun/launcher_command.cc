#include "tools/ferryrun/launcher_command.h"

#include <algorithm>
#include <sstream>
#include <string_view>

namespace ferry::tools {
namespace {

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

}  // namespace

StatusOr<std::vector<std::string>> LauncherCommand(const config::Options& options,
                                                   const std::string& host,
                                                   const std::string& program,
                                                   const std::vector<std::string>& arguments) {
  if (options.launcher == "none") {
    return Status(ErrorCode::kConfiguration,
                  host + " is another host, and launcher is none (use --launcher ssh or srun)");
  }
  // srun passes words on as they are; the others give them to a shell there.
  const bool by_srun = options.launcher == "srun" && options.rsh.empty();
  std::vector<std::string> command;
  if (by_srun) {
    command = {"srun",         "--nodes=1",      "--ntasks=1",         "--nodelist=" + host,
               "--overlap",    "--input=0",      "--kill-on-bad-exit", "--mpi=none",
               "--export=ALL", "--cpu-bind=none"};
  } else {
    std::istringstream words(options.rsh.empty() ? "ssh -x -o BatchMode=yes" : options.rsh);
    for (std::string word; words >> word;) {
      command.push_back(word);
    }
    if (command.empty()) {
      return Status(ErrorCode::kConfiguration,
                    "rsh is \"" + options.rsh + "\", which is no command");
    }
    command.push_back(host);
  }
  command.push_back(by_srun ? program : Quoted(program));
  for (const std::string& argument : arguments) {
    command.push_back(by_srun ? argument : Quoted(argument));
  }
  return command;
}

}  // namespace ferry::tools
