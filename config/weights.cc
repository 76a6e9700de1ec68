#include "config/weights.h"

#include <algorithm>
#include <string_view>

#include "common/number_text.h"

namespace ferry::config {
namespace {

constexpr uint32_t kMaxWeight = 100;

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
    const bool has_colon = colon != std::string_view::npos;
    const auto number = NumberIn<uint32_t>(part.substr(0, colon));
    const auto weight = NumberIn<uint32_t>(has_colon ? part.substr(colon + 1) : std::string_view());
    if (!number || !weight) {
      return Wrong(part, "it must be " + whose + ":weight,... such as 0:4,7:2");
    }
    if (*weight == 0 || *weight > kMaxWeight) {
      return Wrong(part, "a weight is from 1 to " + std::to_string(kMaxWeight));
    }
    if (!weights.emplace(*number, *weight).second) {
      return Wrong(part, whose + " " + std::to_string(*number) + " has a weight already");
    }
    if (comma == rest.size() - 1) {
      return Wrong(rest, "nothing follows the last comma");
    }
    rest = comma == std::string_view::npos ? std::string_view() : rest.substr(comma + 1);
  }
  return weights;
}

}  // namespace ferry::config
