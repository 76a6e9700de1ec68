#include "transports/ofi/slingshot_key.h"

#include <rdma/fi_endpoint.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <vector>

#include "common/number_text.h"
#include "transports/ofi/cxi_extension.h"

namespace ferry::transport {
namespace {

constexpr char kVnis[] = "SLINGSHOT_VNIS";
constexpr char kServiceIds[] = "SLINGSHOT_SVC_IDS";
constexpr char kDevices[] = "SLINGSHOT_DEVICES";
constexpr char kTrafficClasses[] = "SLINGSHOT_TCS";

// In the order in which Ferry takes one. Best effort is what the provider takes by itself; low
// latency has less bandwidth, and a service seldom has either of the others alone.
struct TrafficClass {
  uint32_t bit;
  uint32_t fabric;
};
constexpr TrafficClass kClasses[] = {{0x8, FI_TC_UNSPEC},
                                     {0x2, FI_TC_LOW_LATENCY},
                                     {0x1, FI_TC_DEDICATED_ACCESS},
                                     {0x4, FI_TC_BULK_DATA}};

Status Refuse(const char* variable, const std::string& value, const std::string& what) {
  return {ErrorCode::kConfiguration,
          std::string(variable) + " is '" + value + "', of the batch system: " + what};
}

std::vector<std::string_view> Entries(std::string_view list) {
  std::vector<std::string_view> entries;
  for (size_t begin = 0; begin <= list.size();) {
    const size_t end = std::min(list.find(',', begin), list.size());
    entries.push_back(list.substr(begin, end - begin));
    begin = end + 1;
  }
  return entries;
}

// The numbers of a list, each from 1 to `most`.
StatusOr<std::vector<uint32_t>> Numbers(const char* variable, const std::string& list,
                                        uint32_t most) {
  std::vector<uint32_t> numbers;
  for (const std::string_view entry : Entries(list)) {
    const std::optional<uint32_t> number = NumberIn<uint32_t>(entry);
    if (!number || *number == 0 || *number > most) {
      return Refuse(variable, list,
                    "'" + std::string(entry) + "' is no number from 1 to " + std::to_string(most));
    }
    numbers.push_back(*number);
  }
  return numbers;
}

StatusOr<uint32_t> ReadTrafficClass(const std::string& text) {
  if (text.empty()) {
    return uint32_t{FI_TC_UNSPEC};
  }
  const bool is_hex = text.starts_with("0x") || text.starts_with("0X");
  const std::string_view digits = std::string_view(text).substr(is_hex ? 2 : 0);
  uint32_t bits = 0;
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), bits, is_hex ? 16 : 10);
  if (error == std::errc() && end == digits.data() + digits.size()) {
    for (const TrafficClass& one : kClasses) {
      if ((bits & one.bit) != 0) {
        return one.fabric;
      }
    }
  }
  return Refuse(kTrafficClasses, text, "it has none of the bits 0x1, 0x2, 0x4 and 0x8");
}

}  // namespace

SlingshotWords TakeSlingshotWords(const char* const* environment,
                                  std::optional<std::string_view> (*find)(const char* const*,
                                                                          std::string_view)) {
  const auto value = [&](const char* name) {
    return std::string(find(environment, name).value_or(""));
  };
  return {.vnis = value(kVnis),
          .service_ids = value(kServiceIds),
          .devices = value(kDevices),
          .traffic_classes = value(kTrafficClasses)};
}

StatusOr<std::optional<SlingshotKey>> ReadSlingshotKey(const SlingshotWords& words,
                                                       const std::string& device) {
  if (words.AreUnset()) {
    return std::optional<SlingshotKey>();
  }
  for (const auto& [variable, value] : {std::pair{kVnis, &words.vnis},
                                        {kServiceIds, &words.service_ids},
                                        {kDevices, &words.devices}}) {
    if (value->empty()) {
      return Status(ErrorCode::kConfiguration,
                    std::string(variable) + " is not set, though others of " + kVnis + ", " +
                        kServiceIds + " and " + kDevices + " are: a job needs all three");
    }
  }
  const StatusOr<std::vector<uint32_t>> vnis = Numbers(kVnis, words.vnis, UINT16_MAX);
  FERRY_RETURN_IF_ERROR(vnis.status());
  const StatusOr<std::vector<uint32_t>> services =
      Numbers(kServiceIds, words.service_ids, UINT32_MAX);
  FERRY_RETURN_IF_ERROR(services.status());
  const StatusOr<uint32_t> traffic_class = ReadTrafficClass(words.traffic_classes);
  FERRY_RETURN_IF_ERROR(traffic_class.status());
  const std::vector<std::string_view> devices = Entries(words.devices);
  if (devices.size() != services->size()) {
    return Refuse(kServiceIds, words.service_ids,
                  "it names " + std::to_string(services->size()) + " services for the " +
                      std::to_string(devices.size()) + " NICs of " + kDevices + " (" +
                      words.devices + ")");
  }
  const auto found = device.empty() ? devices.begin() : std::ranges::find(devices, device);
  if (found == devices.end()) {
    return Refuse(kDevices, words.devices, "the job may not use the NIC " + device);
  }
  if (found->empty()) {
    return Refuse(kDevices, words.devices, "a name is missing");
  }
  return std::optional(SlingshotKey{.device = std::string(*found),
                                    .service = (*services)[found - devices.begin()],
                                    .vni = static_cast<uint16_t>(vnis->front()),
                                    .traffic_class = *traffic_class});
}

bool PutKey(const SlingshotKey& key, fi_info* info) {
  const CxiAuthKey bytes = {.service = key.service, .vni = key.vni, .unused = 0};
  void* const copy = std::malloc(sizeof(bytes));  // libfabric frees it with `info`
  if (copy == nullptr) {
    return false;
  }
  std::memcpy(copy, &bytes, sizeof(bytes));
  std::free(info->domain_attr->auth_key);
  info->domain_attr->auth_key = static_cast<uint8_t*>(copy);
  info->domain_attr->auth_key_size = sizeof(bytes);
  info->domain_attr->tclass = key.traffic_class;
  info->tx_attr->tclass = key.traffic_class;
  return true;
}

std::string KeyText(const fi_info& info) {
  if (info.domain_attr->auth_key == nullptr ||
      info.domain_attr->auth_key_size != sizeof(CxiAuthKey)) {
    return "";
  }
  CxiAuthKey key{};
  std::memcpy(&key, info.domain_attr->auth_key, sizeof(key));
  return "VNI " + std::to_string(key.vni) + ", service " + std::to_string(key.service);
}

}  // namespace ferry::transport
