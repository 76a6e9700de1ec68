#include "tools/ferryctl/option_report.h"

#include <functional>
#include <variant>

#include "config/environment.h"
#include "config/loader.h"
#include "config/toml_loader.h"

namespace ferry::tools {
namespace {

using config::Option;
using config::Options;

// Options that differ from the defaults in every member, though not all by values that are allowed.
Options NoDefaults() {
  Options options;
  for (const Option& option : config::OptionTable()) {
    if (const auto* number = std::get_if<uint64_t Options::*>(&option.member)) {
      ++(options.*(*number));
    } else {
      options.*std::get<std::string Options::*>(option.member) += '?';
    }
  }
  return options;
}

// Finds the options that a source sets: applied to two sets of options that differ everywhere, it
// makes those equal.
class SetBy {
 public:
  Status Apply(const std::function<Status(Options*)>& source) {
    FERRY_RETURN_IF_ERROR(source(&one_));
    return source(&other_);
  }
  bool Has(Option option) const {
    option.secret = false;  // compared, not shown
    return config::OptionText(option, one_) == config::OptionText(option, other_);
  }

 private:
  Options one_;
  Options other_ = NoDefaults();
};

}  // namespace

StatusOr<std::vector<OptionOrigin>> ReportOptions(const std::vector<std::string>& flags,
                                                  const char* const* environment) {
  std::vector<const char*> arguments;
  arguments.reserve(flags.size());
  for (const std::string& flag : flags) {
    arguments.push_back(flag.c_str());
  }
  SetBy by_flags;
  FERRY_RETURN_IF_ERROR(
      by_flags.Apply([&](Options* options) { return config::ApplyFlags(arguments, options); }));
  SetBy by_environment;
  FERRY_RETURN_IF_ERROR(by_environment.Apply(
      [&](Options* options) { return config::ApplyEnvironment(environment, options); }));
  const StatusOr<Options> effective = config::LoadOptions(arguments, environment);
  FERRY_RETURN_IF_ERROR(effective.status());
  SetBy by_file;
  if (const std::string& file = effective->config_file; !file.empty()) {
    FERRY_RETURN_IF_ERROR(
        by_file.Apply([&](Options* options) { return config::ApplyToml(file, options); }));
  }

  std::vector<OptionOrigin> report;
  for (const Option& option : config::OptionTable()) {
    OptionOrigin row = {&option, config::OptionText(option, *effective), "default"};
    if (by_flags.Has(option)) {
      row.origin = std::string("flag --") + option.name;
    } else if (by_environment.Has(option)) {
      row.origin = "variable " + config::EnvironmentVariable(option);
    } else if (by_file.Has(option)) {
      row.origin = "file " + effective->config_file;
    } else if (option.secret) {
      row.value.clear();
    }
    report.push_back(std::move(row));
  }
  return report;
}

}  // namespace ferry::tools
