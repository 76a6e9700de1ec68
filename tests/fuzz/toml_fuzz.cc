// ferryd.toml with arbitrary contents: options, or an error that says where.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "config/toml_loader.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  ferry::config::Options options;
  const ferry::Status status = ferry::config::ApplyTomlText(
      std::string_view(reinterpret_cast<const char*>(data), size), "fuzz.toml", &options);
  if (!status.ok() && (status.code() != ferry::ErrorCode::kConfiguration ||
                       status.message().find("fuzz.toml") == std::string::npos)) {
    abort();
  }
  return 0;
}
