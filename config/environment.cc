#include "config/environment.h"

#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <iterator>

#include "common/nearest.h"
#include "common/own_folders.h"

namespace ferry::config {
namespace {

constexpr char kUnmade[] = "XXXXXX";  // as mkdtemp wants it

constexpr std::string_view kPrefix = "FERRY_";

// Names of places, for users' scripts and modules; what the compiler wrappers and ferryrun --abi
// read; and what ranks read that meet without a launcher's server
// (client/bootstrap/meeting_place.h).
constexpr std::string_view kReserved[] = {
    "FERRY_ROOT", "FERRY_HOME", "FERRY_DIR",          "FERRY_CC",
    "FERRY_CXX",  "FERRY_ABI",  "FERRY_MEETING_PORT", "FERRY_JOB_SECRET_FILE"};

// The beginnings of variables that GPU drivers, and the code that loads them, obey.
constexpr std::string_view kDriverVariables[] = {
    "LD_LIBRARY_PATH=", "CUDA_", "HIP_", "HSA_", "ROCR_", "GPU_", "ZE_", "ZES_"};

std::string Text(Option option, const Options& options) {
  option.secret = false;
  return OptionText(option, options);
}

bool IsAlike(const Option& option, const Options& one, const Options& other) {
  return Text(option, one) == Text(option, other);
}

std::string EntryFor(const Option& option, const Options& options) {
  return EnvironmentVariable(option) + "=" + Text(option, options);
}

std::string Capitals(std::string text) {
  for (char& c : text) {
    c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  }
  return text;
}

// FERRY_LOG_LEVEL -> log_level.
std::string OptionName(std::string_view variable) {
  std::string name(variable.substr(kPrefix.size()));
  for (char& c : name) {
    c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return name;
}

// The option that the variable sets; null if there is none.
const Option* OptionOf(std::string_view variable) {
  if (!variable.starts_with(kPrefix)) {
    return nullptr;
  }
  const Option* option = FindOption(OptionName(variable));
  return option != nullptr && EnvironmentVariable(*option) == variable ? option : nullptr;
}

}  // namespace

// ---- EnsureEnvironment ----

Status EnsureEnvironment(std::span<const Variable> variables) {
  for (const Variable& variable : variables) {
    if (setenv(variable.name, variable.value, /*replace=*/0) != 0) {
      return StatusFromErrno(errno, std::string("setting ") + variable.name);
    }
  }
  return {};
}

// ---- Environment ----

std::string DefaultRunDirectory(const char* const* environment) {
  const uid_t uid = geteuid();
  if (uid == 0) {
    return kSystemRunDirectory;
  }
  if (const auto runtime = FindVariable(environment, "XDG_RUNTIME_DIR");
      runtime && !runtime->empty()) {
    return std::string(*runtime) + "/ferry";
  }
  // A shell that no session manager has started lacks the variable.
  if (const std::string runtime = "/run/user/" + std::to_string(uid); IsFolderOf(runtime, uid)) {
    return runtime + "/ferry";
  }
  const std::vector<std::string> made = FoldersOf(TemporaryBase(), OwnPrefix(uid), uid);
  const auto served = std::find_if(made.begin(), made.end(), [](const std::string& folder) {
    return access((folder + "/control.sock").c_str(), F_OK) == 0;
  });
  if (!made.empty()) {
    return served != made.end() ? *served : made.front();
  }
  return TemporaryBase() + "/" + OwnPrefix(uid) + kUnmade;
}

std::string OwnPrefix(uid_t uid) { return "ferry-" + std::to_string(uid) + "-"; }

bool IsDefaultRunDirectory(const std::string& run_directory, const char* const* environment) {
  return IsUnmade(run_directory) || run_directory == DefaultRunDirectory(environment);
}

bool IsUnmade(const std::string& run_directory) { return run_directory.ends_with(kUnmade); }

std::string TemporaryBase() {
  constexpr char kMemory[] = "/dev/shm";
  constexpr char kUsual[] = "/tmp";
  const auto is_usable = [](const char* folder) { return access(folder, W_OK | X_OK) == 0; };
  return !is_usable(kUsual) && is_usable(kMemory) ? kMemory : kUsual;
}

std::string HostName() {
  char name[256] = {};
  return gethostname(name, sizeof(name) - 1) == 0 ? name : "localhost";
}

const char* const* ProcessEnvironment() { return environ; }

std::optional<std::string_view> FindVariable(const char* const* environment,
                                             std::string_view name) {
  for (; *environment != nullptr; ++environment) {
    const std::string_view entry = *environment;
    if (entry.size() > name.size() && entry.starts_with(name) && entry[name.size()] == '=') {
      return entry.substr(name.size() + 1);
    }
  }
  return std::nullopt;
}

std::vector<std::string> ForeignEnvironment(const char* const* environment) {
  std::vector<std::string> entries;
  for (; *environment != nullptr; ++environment) {
    const std::string_view entry = *environment;
    if (OptionOf(entry.substr(0, entry.find('='))) == nullptr) {
      entries.emplace_back(entry);
    }
  }
  return entries;
}

Status ApplyEnvironment(const char* const* environment, Options* options) {
  for (; *environment != nullptr; ++environment) {
    const std::string_view entry = *environment;
    const std::string_view variable = entry.substr(0, entry.find('='));
    const Option* option = variable.size() < entry.size() ? OptionOf(variable) : nullptr;
    if (option != nullptr) {
      FERRY_RETURN_IF_ERROR(SetOption(*option, entry.substr(variable.size() + 1),
                                      "environment variable " + std::string(variable), options));
    }
  }
  return {};
}

std::vector<std::string> UnknownVariables(const char* const* environment) {
  std::vector<std::string> known;
  for (const Option& option : OptionTable()) {
    known.push_back(EnvironmentVariable(option));
  }
  const std::vector<std::string_view> names(known.begin(), known.end());
  std::vector<std::string> sentences;
  for (; *environment != nullptr; ++environment) {
    const std::string_view entry = *environment;
    const std::string variable(entry.substr(0, entry.find('=')));
    if (!variable.starts_with(kPrefix) || OptionOf(variable) != nullptr ||
        std::find(std::begin(kReserved), std::end(kReserved), variable) != std::end(kReserved)) {
      continue;
    }
    const std::string meant = DidYouMean(Capitals(variable), names);
    sentences.push_back("environment variable " + variable + " belongs to no option of Ferry" +
                        (meant.empty() ? "; `ferryd --help` lists all options" : meant));
  }
  return sentences;
}

Status FinishOptions(const char* const* environment, Options* options) {
  if (options->run_directory.empty()) {
    options->run_directory = DefaultRunDirectory(environment);
  }
  if (options->node_name.empty()) {
    options->node_name = HostName();
  }
  return CheckOptions(*options);
}

StatusOr<Options> OptionsFromEnvironment(const char* const* environment) {
  Options options;
  FERRY_RETURN_IF_ERROR(ApplyEnvironment(environment, &options));
  FERRY_RETURN_IF_ERROR(FinishOptions(environment, &options));
  return options;
}

std::vector<std::string> EnvironmentFor(const Options& options) {
  const Options defaults;
  std::vector<std::string> entries;
  for (const Option& option : OptionTable()) {
    const bool in_job = option.group == Group::kLaunch && options.size != 0;
    if (in_job || !IsAlike(option, options, defaults)) {
      entries.push_back(EntryFor(option, options));
    }
  }
  return entries;
}

std::vector<std::string> GpuEnvironment(const Options& options, const char* const* environment) {
  const Options defaults;
  std::vector<std::string> entries;
  for (const Option& option : OptionTable()) {
    const bool of_gpus = option.group == Group::kGpu || option.group == Group::kSimulation;
    if (of_gpus && !IsAlike(option, options, defaults)) {
      entries.push_back(EntryFor(option, options));
    }
  }
  for (; *environment != nullptr; ++environment) {
    const std::string_view entry = *environment;
    if (std::any_of(std::begin(kDriverVariables), std::end(kDriverVariables),
                    [&](std::string_view prefix) { return entry.starts_with(prefix); })) {
      entries.emplace_back(entry);
    }
  }
  return entries;
}

}  // namespace ferry::config
