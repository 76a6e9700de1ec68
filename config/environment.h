// Reads options from environment variables. No other file of Ferry reads the environment. Light
// enough for libferry: no TOML, no logging.
//
// Any thread, but not while another thread changes the environment. Nothing blocks. Errors:
// kConfiguration, naming the variable.
#pragma once

#include <sys/types.h>

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/status.h"
#include "config/options.h"

namespace ferry::config {

// The run directory of the daemon that serves all users, which root starts.
inline constexpr char kSystemRunDirectory[] = "/run/ferry";

// The run directory where no option names one: root's is kSystemRunDirectory. Other users have one
// below $XDG_RUNTIME_DIR or /run/user/UID, or else a folder of their own in TemporaryBase, with a
// name that cannot be guessed: before ferryd has made it, its name ends as mkdtemp wants it
// (IsUnmade). Blocks on the file system only.
std::string DefaultRunDirectory(const char* const* environment);
// The beginning of the names of such folders in TemporaryBase.
std::string OwnPrefix(uid_t uid);
// Returns true if `run_directory` is that directory, or the name that it had before ferryd made it.
bool IsDefaultRunDirectory(const std::string& run_directory, const char* const* environment);
// Returns true if ferryd has still to complete the run directory's name, so that no daemon serves
// there.
bool IsUnmade(const std::string& run_directory);

// The folder for short-lived directories for which the environment names no place: /tmp, or
// /dev/shm where /tmp cannot be written to.
std::string TemporaryBase();

// Environment of this process, in the form of execve: "NAME=value" strings ended by a null pointer.
const char* const* ProcessEnvironment();

// The value of one variable, such as PATH. It lives as long as `environment`.
std::optional<std::string_view> FindVariable(const char* const* environment, std::string_view name);

// The entries that set no option of Ferry's; a launcher passes them on beside EnvironmentFor.
std::vector<std::string> ForeignEnvironment(const char* const* environment);

// This host's name; "localhost" if the kernel tells none.
std::string HostName();

// Reads every variable of `environment` that belongs to an option into `options`.
Status ApplyEnvironment(const char* const* environment, Options* options);

// A sentence for each FERRY_* variable that belongs to no option, with the nearest that does: more
// likely a typing mistake than meant for another program. FERRY_ROOT, FERRY_HOME and FERRY_DIR, by
// which users and their modules name places, belong to none and never will. A program prints these
// sentences once. Ranks of ferryrun do not, since ferryrun does.
std::vector<std::string> UnknownVariables(const char* const* environment);

// The last step once all sources are read: fills in run_directory and node_name where they are
// empty and checks that the values fit each other.
Status FinishOptions(const char* const* environment, Options* options);

// The options of a rank: defaults, `environment`, FinishOptions.
StatusOr<Options> OptionsFromEnvironment(const char* const* environment);

// The "FERRY_NAME=value" strings that give a child process these options: one for each value that
// is not the default, secrets included, and a rank's whole place in its job (scripts read it). For
// execve and posix_spawn only; never for a log.
std::vector<std::string> EnvironmentFor(const Options& options);

// The variables that a child process needs to open the same GPU backend as this process: the GPUs'
// options from EnvironmentFor, and from `environment` the variables that say where libraries are
// and those that vendors' drivers obey (CUDA_*, ROCR_*, ZE_* and the like).
std::vector<std::string> GpuEnvironment(const Options& options, const char* const* environment);

// Variables that libraries read as they are loaded, for those that are opened after main began.
struct Variable {
  const char* name;
  const char* value;
};

// Makes sure that the variables are in this process's environment: values that are there already
// stay. Pointers into the environment (ProcessEnvironment) that were taken before are void. Main
// thread, before any other is started.
Status EnsureEnvironment(std::span<const Variable> variables);

}  // namespace ferry::config
