// Chooses the daemons that a command of ferryctl is about: the one that --run_directory or its
// variable names; else those with the job that -j names; else the one that ferryrun would use on
// this node; else this user's private ones.
//
// Main thread. Blocks for as long as daemons take to answer. Errors: Observer's; kNotFound: no
// daemon of this user has that job; kConfiguration: the error of LoadOptions.
#pragma once

#include <string>
#include <vector>

#include "common/status.h"
#include "tools/admin/daemon_client.h"
#include "tools/admin/daemon_search.h"
#include "tools/ferryctl/arguments.h"
#include "tools/ferryctl/job_names.h"

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
// All daemons of this user that answer, or the named one; never empty.
StatusOr<std::vector<Observer>> AllAnswering(const CtlArguments& arguments);
// The jobs of these daemons, each once.
JobList JobsOf(const std::vector<Observer>& daemons);
// Finds what `text` means, and the daemons that have the job; never none. Errors: those of
// ReadMeant, and of MeetDaemons.
struct MeantThere {
  Meant meant;
  std::string label;  // of the job
  std::vector<Observer> daemons;
};
StatusOr<MeantThere> FindMeant(const CtlArguments& arguments, const std::string& text);
// The place of the only possible daemon. If there are several, kInvalidArgument names them.
struct ChosenPlace {
  std::string run_directory;
  std::string daemon_user;  // the option
};
StatusOr<ChosenPlace> ChooseOne(const CtlArguments& arguments);

}  // namespace ferry::tools
