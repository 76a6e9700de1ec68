#include "config/loader.h"

#include "config/environment.h"
#include "config/flags.h"
#include "config/toml_loader.h"

namespace ferry::config {

StatusOr<Options> LoadOptions(std::span<const char* const> flags, const char* const* environment) {
  Options first;  // only to learn which file to read
  FERRY_RETURN_IF_ERROR(ApplyEnvironment(environment, &first));
  FERRY_RETURN_IF_ERROR(ApplyFlags(flags, &first));

  Options options;
  if (!first.config_file.empty()) {
    FERRY_RETURN_IF_ERROR(ApplyToml(first.config_file, &options));
  }
  FERRY_RETURN_IF_ERROR(ApplyEnvironment(environment, &options));
  FERRY_RETURN_IF_ERROR(ApplyFlags(flags, &options));
  FERRY_RETURN_IF_ERROR(FinishOptions(environment, &options));
  return options;
}

}  // namespace ferry::config
