// The address of a node with several NICs: those of its rails, and a cookie that names it.
//
// Pure: any thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace ferry::transport {

inline constexpr size_t kMaxRails = 8;

// Random, and known only to those who were given the address.
using RailCookie = std::array<uint64_t, 2>;

struct RailAddress {
  RailCookie cookie{};
  std::vector<std::vector<std::byte>> rails;  // 1 to kMaxRails
};

std::vector<std::byte> Encode(const RailAddress& address);
// The address in these bytes; nothing if they hold none.
std::optional<RailAddress> Decode(std::span<const std::byte> bytes);

}  // namespace ferry::transport
