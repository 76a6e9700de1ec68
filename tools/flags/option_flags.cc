#include "tools/flags/option_flags.h"

#include <errno.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <utility>

#include "config/environment.h"

namespace ferry::tools {

void AddOptionFlags(CLI::App* app, std::vector<std::string>* flags) {
  for (const config::Option& option : config::OptionTable()) {
    if (option.source == config::Source::kEnvironmentOnly) {
      continue;
    }
    const std::string flag = std::string("--") + option.name;
    std::string names = flag;
    if (std::string dashed = flag; dashed.find('_') != std::string::npos) {
      std::replace(dashed.begin(), dashed.end(), '_', '-');
      names += "," + dashed;
    }
    app->add_option_function<std::string>(names,
                                          [flags, flag](const std::string& value) {
                                            flags->emplace_back(flag).append("=" + value);
                                          })
        ->group("");
  }
}

void WarnOfUnknownVariables() {
  static bool told = false;
  if (std::exchange(told, true)) {
    return;
  }
  for (const std::string& sentence : config::UnknownVariables(config::ProcessEnvironment())) {
    std::fprintf(stderr, "%s: warning: %s\n", program_invocation_short_name, sentence.c_str());
  }
}

StatusOr<config::Options> LoadOptions(const std::vector<std::string>& flags,
                                      config::Origins* origins) {
  WarnOfUnknownVariables();
  std::vector<const char*> arguments;
  arguments.reserve(flags.size());
  for (const std::string& flag : flags) {
    arguments.push_back(flag.c_str());
  }
  return config::LoadOptions(arguments, config::ProcessEnvironment(), origins);
}

}  // namespace ferry::tools
