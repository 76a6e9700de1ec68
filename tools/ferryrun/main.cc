// ferryrun: runs a program as the ranks of a job (launch.h), or, called by another ferryrun, what
// that one wants here, or, called by libferry, a daemon (daemons.h).
#include <string_view>
#include <variant>

#include "common/open_files.h"
#include "common/topology/discover.h"
#include "config/environment.h"
#include "tools/ferryrun/agent_call.h"
#include "tools/ferryrun/agent_protocol.h"
#include "tools/ferryrun/arguments.h"
#include "tools/ferryrun/daemons.h"
#include "tools/ferryrun/launch.h"
#include "tools/ferryrun/pmix_server.h"
#include "tools/ferryrun/relay.h"

int main(int argc, char** argv) {
  ferry::RaiseOpenFiles();
  // StartRank keeps the first from ranks. Without it, hwloc takes twenty times as long; without the
  // second, a PMIx server makes folders in /tmp.
  constexpr ferry::config::Variable kLibraries[] = {
      {ferry::topology::kPluginsVariable, ferry::topology::kPluginsLeftOut},
      {ferry::tools::kPmixStoreVariable, ferry::tools::kPmixStore}};
  (void)ferry::config::EnsureEnvironment(kLibraries);
  if (argc == 2 && std::string_view(argv[1]) == ferry::tools::kAgentFlag) {
    return ferry::tools::RunAgent();
  }
  if (argc >= 2 && std::string_view(argv[1]) == ferry::tools::kCallFlag) {
    return ferry::tools::RunCaller({argv + 2, argv + argc});
  }
  if (argc == 2 && std::string_view(argv[1]) == ferry::tools::kRelayFlag) {
    return ferry::tools::RunRelay();
  }
  if (argc == 2 && std::string_view(argv[1]) == ferry::tools::kHelperFlag) {
    return ferry::tools::RunDaemonHelper();
  }
  auto arguments = ferry::tools::ParseArguments(argc, argv, ferry::config::ProcessEnvironment());
  if (const int* exit_code = std::get_if<int>(&arguments)) {
    return *exit_code;
  }
  return ferry::tools::RunJob(std::get<ferry::tools::Arguments>(std::move(arguments)));
}
