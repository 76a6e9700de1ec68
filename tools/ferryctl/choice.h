// Chooses the daemons that a command of ferryctl is about: the one that --run_directory or its
// variable names; else those with the job that -j names; else the one that ferryrun would use on
// this node; else this user's private ones.
//
// Main thread. Blocks for as long as daemons take to answer. Errors: Observer's; kNotFound: no
// daemon of this user has that job; kConfiguration: the error of LoadOptions.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "common/status.h"
#include "tools/admin/daemon_client.h"
#include "tools/admin/daemon_search.h"
#include "tools/ferryctl/arguments.h"

namespace ferry::tools {

inline constexpr uint64_t kAnswerTimeoutMs = 3000;

// A run directory with a daemon, and the connection to that daemon, or why it does not answer.
struct MetDaemon {
  DaemonDirectory place;
  StatusOr<Observer> observer;
};

// Connects to every daemon of this user, or only to the named one, with its error if none serves
// there.
StatusOr<std::vector<MetDaemon>> MeetDaemons(const CtlArguments& arguments);

// The daemons that the command asks; never empty.
StatusOr<std::vector<Observer>> ChooseDaemons(const CtlArguments& arguments);
// The daemons that have the job that `name`, JOB or JOB.RANK, is about; if none has, all that
// answer. Never empty.
StatusOr<std::vector<Observer>> ChooseDaemonsOf(const CtlArguments& arguments,
                                                const std::string& name);
// The id of the job that `name` means, of those that these daemons have: "x" means the newest of
// the programs that follow each other in that launch (common/job_name.h), "x#2" its second, "x#1"
// its first. `name` itself if there is none.
std::string NewestProgram(std::span<const Observer> daemons, const std::string& name);
// The place of the only possible daemon. If there are several, kInvalidArgument names them.
struct ChosenPlace {
  std::string run_directory;
  std::string daemon_user;  // the option
};
StatusOr<ChosenPlace> ChooseOne(const CtlArguments& arguments);

}  // namespace ferry::tools
