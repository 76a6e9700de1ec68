#include "transports/rails/rail_address.h"

#include <cstring>

namespace ferry::transport {
namespace {

constexpr uint32_t kMagic = 0x4c52'5246;  // "FRRL"

struct Head {
  uint32_t magic;
  uint32_t rails;
  Secret cookie;
};

void Append(std::vector<std::byte>* bytes, const void* data, size_t size) {
  const auto* begin = static_cast<const std::byte*>(data);
  bytes->insert(bytes->end(), begin, begin + size);
}

bool Take(std::span<const std::byte>* bytes, void* data, size_t size) {
  if (bytes->size() < size) {
    return false;
  }
  std::memcpy(data, bytes->data(), size);
  *bytes = bytes->subspan(size);
  return true;
}

}  // namespace

std::vector<std::byte> Encode(const RailAddress& address) {
  std::vector<std::byte> bytes;
  const Head head{kMagic, static_cast<uint32_t>(address.rails.size()), address.cookie};
  Append(&bytes, &head, sizeof(head));
  for (const std::vector<std::byte>& rail : address.rails) {
    const auto size = static_cast<uint32_t>(rail.size());
    Append(&bytes, &size, sizeof(size));
    Append(&bytes, rail.data(), rail.size());
  }
  return bytes;
}

std::optional<RailAddress> Decode(std::span<const std::byte> bytes) {
  Head head{};
  if (!Take(&bytes, &head, sizeof(head)) || head.magic != kMagic || head.rails == 0 ||
      head.rails > kMaxRails) {
    return std::nullopt;
  }
  RailAddress address;
  address.cookie = head.cookie;
  for (uint32_t i = 0; i < head.rails; i++) {
    uint32_t size = 0;
    if (!Take(&bytes, &size, sizeof(size)) || size == 0 || size > bytes.size()) {
      return std::nullopt;
    }
    address.rails.emplace_back(bytes.begin(), bytes.begin() + size);
    bytes = bytes.subspan(size);
  }
  return bytes.empty() ? std::optional(std::move(address)) : std::nullopt;
}

}  // namespace ferry::transport
