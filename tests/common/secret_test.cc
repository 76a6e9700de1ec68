#include "common/secret.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <set>
#include <string>
#include <vector>

namespace ferry {
namespace {

std::string Hex(const Secret& secret) {
  constexpr char kDigits[] = "0123456789ABCDEF";
  std::string text;
  for (const std::byte byte : secret) {
    text += kDigits[std::to_integer<unsigned>(byte) >> 4];
    text += kDigits[std::to_integer<unsigned>(byte) & 15];
  }
  return text;
}

// Of the reference implementation: key and text count from 0. `openssl mac SIPHASH` says the same.
TEST(SecretTest, HashesAsTheReferenceDoes) {
  Secret key;
  for (size_t i = 0; i < key.size(); i++) {
    key[i] = static_cast<std::byte>(i);
  }
  const auto hash = [&](size_t bytes) {
    std::vector<std::byte> text(bytes);
    for (size_t i = 0; i < bytes; i++) {
      text[i] = static_cast<std::byte>(i);
    }
    return Hex(SipHash(key, text));
  };
  EXPECT_EQ(hash(0), "A3817F04BA25A8E66DF67214C7550293");
  EXPECT_EQ(hash(1), "DA87C1D86B99AF44347659119B22FC45");
  EXPECT_EQ(hash(7), "A1F1EBBED8DBC153C0B84AA61FF08239");
  EXPECT_EQ(hash(8), "3B62A9BA6258F5610F83E264F31497B4");
  EXPECT_EQ(hash(15), "5493E99933B0A8117E08EC0F97CFC3D9");
  EXPECT_EQ(hash(16), "6EE2A4CA67B054BBFD3315BF85230577");
  EXPECT_EQ(hash(63), "5150D1772F50834A503E069A973FBD7C");
}

TEST(SecretTest, EveryoneHasAnotherOneForEachPurpose) {
  const StatusOr<SecretSource> one = SecretSource::Draw();
  const StatusOr<SecretSource> other = SecretSource::Draw();
  ASSERT_TRUE(one.ok() && other.ok());
  std::set<Secret> seen;
  for (const uint64_t whom : {uint64_t{0}, uint64_t{1}, uint64_t{2}, uint64_t{1} << 63}) {
    for (const uint64_t purpose : {0, 1, 2}) {
      EXPECT_TRUE(seen.insert(one->For(whom, purpose)).second);
      EXPECT_TRUE(seen.insert(other->For(whom, purpose)).second);
      EXPECT_TRUE(SameSecret(one->For(whom, purpose), one->For(whom, purpose)));
    }
  }
}

TEST(SecretTest, OneBitMakesADifference) {
  const Secret secret = SecretSource::Draw()->For(1, 1);
  for (size_t bit = 0; bit < 8 * secret.size(); bit++) {
    Secret other = secret;
    other[bit / 8] ^= static_cast<std::byte>(1U << bit % 8);
    EXPECT_FALSE(SameSecret(secret, other));
  }
}

}  // namespace
}  // namespace ferry
