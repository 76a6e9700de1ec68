#include "config/loader.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "config/environment.h"
#include "config/toml_loader.h"

namespace ferry::config {

// ---- Flags ----

Status ApplyFlags(std::span<const char* const> arguments, Options* options, Origins* origins) {
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string_view argument = arguments[i];
    if (!argument.starts_with("--") || argument.size() == 2) {
      return {ErrorCode::kConfiguration, "unexpected argument \"" + std::string(argument) +
                                             "\": flags are written --name=value"};
    }
    const size_t equals = argument.find('=');
    std::string name(argument.substr(2, equals == argument.npos ? equals : equals - 2));
    const std::string where = "flag --" + name;
    std::replace(name.begin(), name.end(), '-', '_');
    const Option* option = FindOption(name);
    if (option == nullptr) {
      return UnknownOption(name, where);
    }
    if (option->source == Source::kEnvironmentOnly) {
      return {ErrorCode::kConfiguration,
              where + ": " + option->name +
                  " cannot be set by a flag: use the environment variable " +
                  EnvironmentVariable(*option)};
    }
    if (equals == argument.npos && i + 1 == arguments.size()) {
      return {ErrorCode::kConfiguration,
              where + ": the value is missing: it must be " + AllowedValues(*option)};
    }
    const std::string_view value =
        equals == argument.npos ? arguments[++i] : argument.substr(equals + 1);
    FERRY_RETURN_IF_ERROR(SetOption(*option, value, where, options));
    if (origins != nullptr) {
      (*origins)[option->name] = Origin::kFlag;
    }
  }
  return {};
}

// ---- Loader ----

StatusOr<Options> LoadOptions(std::span<const char* const> flags, const char* const* environment,
                              Origins* origins) {
  Options first;  // only to learn which file to read
  FERRY_RETURN_IF_ERROR(ApplyEnvironment(environment, &first));
  FERRY_RETURN_IF_ERROR(ApplyFlags(flags, &first));

  Options options;
  Origins found;
  if (!first.config_file.empty()) {
    std::vector<const Option*> in_file;
    FERRY_RETURN_IF_ERROR(ApplyToml(first.config_file, &options, &in_file));
    for (const Option* option : in_file) {
      found[option->name] = Origin::kFile;
    }
  }
  FERRY_RETURN_IF_ERROR(ApplyEnvironment(environment, &options));
  for (const Option& option : OptionTable()) {
    if (FindVariable(environment, EnvironmentVariable(option))) {
      found[option.name] = Origin::kEnvironment;
    }
  }
  FERRY_RETURN_IF_ERROR(ApplyFlags(flags, &options, &found));
  FERRY_RETURN_IF_ERROR(FinishOptions(environment, &options));
  if (origins != nullptr) {
    *origins = std::move(found);
  }
  return options;
}

}  // namespace ferry::config
