#include "tools/ferryctl/option_report.h"

#include <utility>

#include "config/loader.h"

namespace ferry::tools {
namespace {

std::string Describe(const config::Option& option, config::Origin origin, const std::string& file) {
  switch (origin) {
    case config::Origin::kFile:
      return "file " + file;
    case config::Origin::kEnvironment:
      return "variable " + config::EnvironmentVariable(option);
    case config::Origin::kFlag:
      return std::string("flag --") + option.name;
  }
  return "";
}

}  // namespace

StatusOr<std::vector<OptionOrigin>> ReportOptions(const std::vector<std::string>& flags,
                                                  const char* const* environment) {
  std::vector<const char*> arguments;
  arguments.reserve(flags.size());
  for (const std::string& flag : flags) {
    arguments.push_back(flag.c_str());
  }
  config::Origins origins;
  const StatusOr<config::Options> options = config::LoadOptions(arguments, environment, &origins);
  FERRY_RETURN_IF_ERROR(options.status());

  std::vector<OptionOrigin> report;
  for (const config::Option& option : config::OptionTable()) {
    OptionOrigin row = {&option, config::OptionText(option, *options), "default"};
    if (const auto found = origins.find(option.name); found != origins.end()) {
      row.origin = Describe(option, found->second, options->config_file);
    } else if (option.secret) {
      row.value.clear();
    }
    report.push_back(std::move(row));
  }
  return report;
}

}  // namespace ferry::tools
