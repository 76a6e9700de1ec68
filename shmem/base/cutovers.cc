#include "shmem/base/cutovers.h"

#include <algorithm>
#include <bit>
#include <optional>
#include <utility>

#include "common/number_text.h"
#include "shmem/base/settings.h"

namespace ferry::shmem {
namespace {

constexpr std::array<std::string_view, 2> kNames = {"put", "get"};  // by operation
static_assert(FERRY_SHMEM_PUT == 0 && FERRY_SHMEM_GET == 1);
constexpr std::string_view kNever = "never";

std::string Quoted(std::string_view text) { return "\"" + std::string(text) + "\""; }

Status Wrong(std::string_view where, const std::string& why) {
  return {ErrorCode::kConfiguration, std::string(where) + ": " + why};
}

std::pair<std::string_view, std::optional<std::string_view>> SplitAt(std::string_view text,
                                                                     char separator) {
  const size_t at = text.find(separator);
  if (at == text.npos) {
    return {text, std::nullopt};
  }
  return {text.substr(0, at), text.substr(at + 1)};
}

// The row of a crew of so many threads; none: it is no number of threads.
std::optional<size_t> RowOf(std::string_view threads) {
  const uint64_t number = NumberIn<uint64_t>(threads).value_or(0);
  if (number == 0) {
    return std::nullopt;
  }
  const auto row = static_cast<size_t>(std::bit_width(number) - 1);
  return row < FERRY_SHMEM_CUTOVER_SIZES && std::has_single_bit(number) ? std::optional(row)
                                                                        : std::nullopt;
}

Status ReadItem(std::string_view item, std::string_view where, Cutovers* cutovers) {
  const auto [what, value] = SplitAt(item, '=');
  const auto [name, threads] = SplitAt(what, '/');
  const auto operation = std::find(kNames.begin(), kNames.end(), name);
  if (!value.has_value() || operation == kNames.end()) {
    return Wrong(where, Quoted(item) +
                            " is not of the form put=BYTES or put/THREADS=BYTES (or get), such as "
                            "put/16=64k");
  }
  const std::optional<size_t> first = RowOf(threads.value_or("1"));
  if (!first.has_value()) {
    return Wrong(where, Quoted(*threads) + " in " + Quoted(item) +
                            " is no number of threads: a power of two of at most " +
                            std::to_string(1 << (FERRY_SHMEM_CUTOVER_SIZES - 1)));
  }
  uint64_t bytes = FERRY_SHMEM_NEVER;
  if (*value != kNever) {
    const StatusOr<uint64_t> size = ParseSize(*value);
    if (!size.ok()) {
      return Wrong(where, size.status().message() + "; or never");
    }
    bytes = *size;
  }
  auto& rows = (*cutovers)[static_cast<size_t>(operation - kNames.begin())];
  std::fill(rows.begin() + static_cast<ptrdiff_t>(*first), rows.end(), bytes);
  return {};
}

}  // namespace

Cutovers NoCutovers() {
  Cutovers cutovers;
  for (auto& rows : cutovers) {
    rows.fill(FERRY_SHMEM_NEVER);
  }
  return cutovers;
}

StatusOr<Cutovers> ParseCutovers(std::string_view text, std::string_view where) {
  Cutovers cutovers = NoCutovers();
  while (!text.empty()) {
    const auto [item, rest] = SplitAt(text, ',');
    FERRY_RETURN_IF_ERROR(ReadItem(item, where, &cutovers));
    text = rest.value_or("");
  }
  return cutovers;
}

std::string FormatCutovers(const Cutovers& cutovers) {
  std::string text;
  for (size_t operation = 0; operation < kNames.size(); ++operation) {
    uint64_t before = FERRY_SHMEM_NEVER;
    for (size_t row = 0; row < FERRY_SHMEM_CUTOVER_SIZES; ++row) {
      const uint64_t bytes = cutovers[operation][row];
      if (bytes == before) {
        continue;
      }
      text += (text.empty() ? "" : ",") + std::string(kNames[operation]) +
              (row == 0 ? "" : "/" + std::to_string(1 << row)) + "=" +
              (bytes == FERRY_SHMEM_NEVER ? std::string(kNever) : std::to_string(bytes));
      before = bytes;
    }
  }
  return text;
}

}  // namespace ferry::shmem
