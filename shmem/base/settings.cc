#include "shmem/base/settings.h"

#include <sys/sysinfo.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <string>

#include "config/environment.h"

namespace ferry::shmem {
namespace {

constexpr std::string_view kSuffixes = "kmgt";
constexpr double kMostBytes = 1ULL << 46;  // beyond what a process can map
constexpr uint64_t kLeastBytes = 1 << 16;

Status Unreadable(std::string_view text) {
  return {ErrorCode::kConfiguration,
          "\"" + std::string(text) +
              "\" is no size: a number, which may have a fraction, and one of the suffixes k, m, g "
              "and t, such as 1.5g"};
}

}  // namespace

StatusOr<uint64_t> ParseSize(std::string_view text) {
  double number = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || !std::isfinite(number) || number < 0 || end - rest > 1) {
    return Unreadable(text);
  }
  if (rest != end) {
    const size_t suffix = kSuffixes.find(static_cast<char>(*rest | 0x20));
    if (suffix == kSuffixes.npos) {
      return Unreadable(text);
    }
    number = std::ldexp(number, static_cast<int>(10 * (suffix + 1)));
  }
  if (number > kMostBytes) {
    return Status(ErrorCode::kConfiguration,
                  "\"" + std::string(text) + "\" is more than a process can map");
  }
  return static_cast<uint64_t>(std::ceil(number));
}

uint64_t MachineBytes() {
  struct sysinfo machine {};
  sysinfo(&machine);
  return (uint64_t{machine.totalram} + machine.totalswap) * machine.mem_unit;
}

StatusOr<HeapSize> FindHeapSize(uint64_t option_bytes, int pes) {
  for (const char* const name : {"SHMEM_SYMMETRIC_SIZE", "SMA_SYMMETRIC_SIZE"}) {
    const std::optional<std::string_view> text =
        config::FindVariable(config::ProcessEnvironment(), name);
    if (!text.has_value() || text->empty()) {
      continue;
    }
    StatusOr<uint64_t> read = ParseSize(*text);
    if (!read.ok()) {
      return Status(read.status().code(), std::string(name) + ": " + read.status().message());
    }
    return HeapSize{.bytes = std::max(*read, kLeastBytes)};
  }
  return option_bytes != 0 ? HeapSize{.bytes = option_bytes}
                           : HeapSize{.bytes = MachineBytes() / 2 / static_cast<uint64_t>(pes),
                                      .is_default = true};
}

}  // namespace ferry::shmem
