#include "transports/rails/rail_address.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <optional>
#include <vector>

namespace ferry::transport {
namespace {

TEST(RailAddressTest, TakesWhatItMadeAndNothingElse) {
  RailAddress address;
  address.cookie = {3, 4};
  address.rails = {std::vector<std::byte>(5, std::byte{1}), std::vector<std::byte>(7)};
  const std::vector<std::byte> bytes = Encode(address);
  const std::optional<RailAddress> decoded = Decode(bytes);
  ASSERT_TRUE(decoded);
  EXPECT_EQ(decoded->cookie, address.cookie);
  EXPECT_EQ(decoded->rails, address.rails);
  for (size_t length = 0; length < bytes.size(); length++) {
    EXPECT_FALSE(Decode({bytes.data(), length})) << length;
  }
  std::vector<std::byte> longer = bytes;
  longer.emplace_back();
  EXPECT_FALSE(Decode(longer));
  address.rails.assign(kMaxRails + 1, std::vector<std::byte>(1));
  EXPECT_FALSE(Decode(Encode(address)));
}

}  // namespace
}  // namespace ferry::transport
