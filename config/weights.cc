#include "config/weights.h"

#include <algorithm>
#include <charconv>
#include <string_view>
#include <system_error>

namespace ferry::config {
namespace {

constexpr uint32_t kMaxWeight = 100;

bool ReadNumber(std::string_view text, uint32_t* number) {
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, *number);
  return error == std::errc() && stop == end && !text.empty();
}

Status Wrong(std::string_view part, const std::string& why) {
  return {ErrorCode::kConfiguration, "\"" + std::string(part) + "\": " + why};
}

}  // namespace

StatusOr<std::map<uint32_t, uint32_t>> ParseWeights(const std::string& text,
                                                    const std::string& whose) {
  std::map<uint32_t, uint32_t> weights;
  std::string_view rest = text;
  while (!rest.empty()) {
    const size_t comma = rest.find(',');
    const std::string_view part = rest.substr(0, comma);
    const size_t colon = part.find(':');
    uint32_t number = 0;
    uint32_t weight = 0;
    if (colon == std::string_view::npos || !ReadNumber(part.substr(0, colon), &number) ||
        !ReadNumber(part.substr(colon + 1), &weight)) {
      return Wrong(part, "it must be " + whose + ":weight,... such as 0:4,7:2");
    }
    if (weight == 0 || weight > kMaxWeight) {
      return Wrong(part, "a weight is from 1 to " + std::to_string(kMaxWeight));
    }
    if (!weights.emplace(number, weight).second) {
      return Wrong(part, whose + " " + std::to_string(number) + " has a weight already");
    }
    if (comma == rest.size() - 1) {
      return Wrong(rest, "nothing follows the last comma");
    }
    rest = comma == std::string_view::npos ? std::string_view() : rest.substr(comma + 1);
  }
  return weights;
}

}  // namespace ferry::config
