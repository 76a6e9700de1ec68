#include "shmem/init/announcements.h"

#include <cstdio>
#include <optional>
#include <string>
#include <string_view>

#include "config/environment.h"
#include "include/ferry/ferry.h"

namespace ferry::shmem {
namespace {

constexpr char kStandard[] = "OpenSHMEM 1.6";

struct Standard {
  const char* name;  // behind SHMEM_ or SMA_
  const char* meaning;
};
constexpr Standard kVariables[] = {
    {"VERSION", "Any value: shmem_init says of which version the library is."},
    {"INFO", "Any value: shmem_init prints this list."},
    {"SYMMETRIC_SIZE",
     "How large the symmetric heap of a PE may become: a number, which may have a fraction and one "
     "of the suffixes k, m, g and t."},
    {"DEBUG", "Any value: calls are checked, as FERRY_SHMEM_CHECK=1 does."},
};

// The value of SHMEM_name, or of SMA_name; empty counts as not set.
std::optional<std::string> FindStandard(const char* name) {
  for (const char* const prefix : {"SHMEM_", "SMA_"}) {
    const std::optional<std::string_view> found =
        config::FindVariable(config::ProcessEnvironment(), std::string(prefix) + name);
    if (found.has_value() && !found->empty()) {
      return std::string(*found);
    }
  }
  return std::nullopt;
}

std::string Entry(const std::string& name, const std::string& value, const std::string& meaning) {
  return "  " + name + ": " + value + "\n    " + meaning + "\n";
}

std::string Information(const config::Options& options, uint64_t heap_bytes) {
  std::string text = "Environment variables of OpenSHMEM, and their values:\n";
  for (const Standard& variable : kVariables) {
    text += Entry(std::string("SHMEM_") + variable.name,
                  FindStandard(variable.name).value_or("not set"), variable.meaning);
  }
  for (const config::Option& option : config::OptionTable()) {
    if (option.group == config::Group::kShmem) {
      text += Entry(config::EnvironmentVariable(option), config::OptionText(option, options),
                    option.help);
    }
  }
  return text + "The symmetric heap of each PE has " + std::to_string(heap_bytes) + " bytes.\n";
}

}  // namespace

bool AsksForChecks(const config::Options& options) {
  return options.shmem_check != 0 || FindStandard("DEBUG").has_value();
}

void Announce(const config::Options& options, uint64_t heap_bytes, bool is_checking) {
  if (ferry_rank() != 0) {
    return;
  }
  std::string text;
  if (FindStandard("VERSION").has_value()) {
    text += std::string("Ferry OpenSHMEM ") + ferry_version() + " (" + kStandard + ")\n";
  }
  if (FindStandard("INFO").has_value()) {
    text += Information(options, heap_bytes);
  }
  if (is_checking && FindStandard("DEBUG").has_value()) {
    text += "SHMEM_DEBUG is set: the calls of OpenSHMEM are checked, which takes time.\n";
  }
  std::fputs(text.c_str(), stderr);
}

}  // namespace ferry::shmem
