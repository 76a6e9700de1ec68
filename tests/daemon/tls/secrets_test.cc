#include "daemon/tls/secrets.h"

#include <gtest/gtest.h>

#include <array>

#include "common/hex_text.h"

namespace ferry::daemon {
namespace {

TEST(SecretsTest, ProofsDependOnSecretJobAndSender) {
  const std::string proof = JobProof("secret", "job", 1);
  EXPECT_EQ(proof.size(), 32U);
  EXPECT_EQ(proof, JobProof("secret", "job", 1));
  EXPECT_NE(proof, JobProof("Secret", "job", 1));
  EXPECT_NE(proof, JobProof("secret", "jobs", 1));
  EXPECT_NE(proof, JobProof("secret", "job", 2));
}

TEST(SecretsTest, ProofIsHmacSha256) {
  // printf 'The quick brown fox|7' | openssl dgst -sha256 -hmac key
  const std::string proof = JobProof("key", "The quick brown fox", 7);
  const auto* bytes = reinterpret_cast<const uint8_t*>(proof.data());
  EXPECT_EQ(HexText({bytes, proof.size()}),
            "4f019089649f8f3365959a639a96d21dbaa1e2824c0f203472578a33d95080f9");
}

TEST(SecretsTest, ComparesWholeTexts) {
  EXPECT_TRUE(ConstantTimeEquals("abc", "abc"));
  EXPECT_FALSE(ConstantTimeEquals("abc", "abd"));
  EXPECT_FALSE(ConstantTimeEquals("abc", "ab"));
  EXPECT_TRUE(ConstantTimeEquals("", ""));
}

TEST(SecretsTest, RandomNumbersDiffer) {
  EXPECT_NE(RandomId(), RandomId());
  std::array<uint8_t, 32> first{};
  std::array<uint8_t, 32> second{};
  FillRandom(first);
  FillRandom(second);
  EXPECT_NE(first, second);
}

TEST(SecretsTest, HexadecimalTextHasTwoDigitsAByte) {
  const std::array<uint8_t, 3> bytes = {0x00, 0x0f, 0xa5};
  EXPECT_EQ(HexText(bytes), "000fa5");
}

}  // namespace
}  // namespace ferry::daemon
