// The address of a node with several NICs: those of its rails, and a cookie by which it knows who
// sends.
//
// Pure: any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "common/secret.h"

namespace ferry::transport {

inline constexpr size_t kMaxRails = 8;

struct RailAddress {
  Secret cookie{};                            // of the node, for the one who is given the address
  std::vector<std::vector<std::byte>> rails;  // 1 to kMaxRails
};

std::vector<std::byte> Encode(const RailAddress& address);
// The address in these bytes; nothing if they hold none.
std::optional<RailAddress> Decode(std::span<const std::byte> bytes);

}  // namespace ferry::transport
