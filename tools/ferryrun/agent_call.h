// Agents that call ferryrun, where one command starts them on all hosts of a job at once, as a step
// of Slurm: its standard streams belong to all of them, so none can carry one agent's orders.
// Beside each agent then runs a caller (`ferryrun --call`), which connects to ferryrun by TCP and
// carries the agent's streams:
//
//   ferryrun ~~~ caller on b --- agent on b
//
// ~~~ are packets that only a holder of this run's secret can read and write
// (client/bootstrap/meeting_stream.h); --- are the standard streams of an agent
// (agent_protocol.h), which notices nothing of it. The caller finds the secret, and ferryrun's
// addresses, in the variable kCallVariable, and takes it out of the environment. It says in its
// first packet where it runs. Ferryrun's first packet is kWelcome, or a sentence why it has no work
// for this agent. All packets that follow are bytes of the streams.
//
// On its standard output, which leads to ferryrun too, a caller says that it calls, and why it
// cannot, by one line each.
//
// PBS passes on neither variables nor output: what a caller writes there ends in files of the job.
// So the place comes in words after kCallFlag, which other users of a host can read, and the key is
// made of both the secret there and one that only processes of the job know (kPbsSecret). Such a
// caller says on standard error only why it cannot call.
//
// Pure data and functions but for RunCaller; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/status.h"

namespace ferry::tools {

// The flag that makes a ferryrun a caller.
inline constexpr char kCallFlag[] = "--call";
inline constexpr char kCallVariable[] = "FERRYRUN_CALL";
// By it PBS's own daemons know the processes of a job (tm_init(3)).
inline constexpr char kPbsSecret[] = "PBS_JOBCOOKIE";

inline constexpr std::string_view kWelcome = "welcome";
// The lines: the word, the host's name, and, for the second one, ": " and why.
inline constexpr std::string_view kCallsWord = "FERRYRUN-CALLS ";
inline constexpr std::string_view kCannotCallWord = "FERRYRUN-CANNOT-CALL ";

// Where ferryrun is to be called.
struct CallPlace {
  uint16_t port = 0;
  std::string secret;                  // without spaces
  std::vector<std::string> addresses;  // of ferryrun's host, in numbers; at least one

  bool operator==(const CallPlace&) const = default;
};
std::string ToText(const CallPlace& place);
// kCorrupt: it is of another release, or no ferryrun has written it.
StatusOr<CallPlace> ReadCallPlace(std::string_view text);

// A caller's first packet.
struct CallHello {
  std::vector<std::string> names;  // of its host: the batch system's, then its own; at least one
  uint32_t tasks = 0;              // how many the command has started on all hosts; 0: unknown

  bool operator==(const CallHello&) const = default;
};
std::string ToText(const CallHello& hello);
// Nothing: no caller has written it.
std::optional<CallHello> ReadCallHello(std::string_view words);

// Of what the key of the packets is made. `of_job`: empty if there is none.
std::string BothSecrets(const std::string& of_run, const std::string& of_job);

// `words`: what follows kCallFlag; none: kCallVariable has them. Calls ferryrun, starts an agent,
// and serves both until the agent has ended, which it does when its ferryrun is gone. Returns the
// agent's exit code, or 1 if ferryrun has not answered within some seconds. Main thread of a
// process that does nothing else.
int RunCaller(const std::vector<std::string>& words);

}  // namespace ferry::tools
