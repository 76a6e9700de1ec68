// The choice if ranks may have direct links, and over which network, by the options and the node.
#include "daemon/links/link_policy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/options.h"

namespace ferry::daemon {
namespace {

using testing::HasSubstr;

constexpr uint32_t kCores = 2;

LinkPolicy Policy(const config::Options& options, const std::string& provider) {
  NicStatistics nic;
  nic.provider = provider;
  nic.domain = "first";
  NicStatistics second = nic;
  second.domain = "second";
  return LinkPolicyFrom(options, {nic, second}, kCores);
}

TEST(LinkPolicyTest, AutoGivesLinksUntilRanksCrowdTheCores) {
  const LinkPolicy policy = Policy({}, "ferry-tcp");
  EXPECT_TRUE(MayHaveLinks(policy, 4 * kCores).ok());
  const Status crowded = MayHaveLinks(policy, 4 * kCores + 1);
  EXPECT_EQ(crowded.code(), ErrorCode::kUnsupported);
  EXPECT_THAT(crowded.message(), HasSubstr("9 ranks on this node"));
  EXPECT_THAT(crowded.message(), HasSubstr("direct_links = always"));
  EXPECT_GT(policy.min_messages, 1U);
}

TEST(LinkPolicyTest, AlwaysGivesThemEverywhereAndAtOnce) {
  config::Options options;
  options.direct_links = "always";
  options.fabric_rails = "eth1,eth2";
  const LinkPolicy policy = Policy(options, "verbs");
  EXPECT_TRUE(MayHaveLinks(policy, 1000).ok());
  EXPECT_EQ(policy.min_messages, 1U);
  EXPECT_EQ(policy.idle_ms, 0U);
}

TEST(LinkPolicyTest, OffGivesNone) {
  config::Options options;
  options.direct_links = "off";
  EXPECT_EQ(MayHaveLinks(Policy(options, "ferry-tcp"), 1).code(), ErrorCode::kConfiguration);
}

TEST(LinkPolicyTest, AutoGivesNoneWhereOneNicOfManyWouldCarryThem) {
  config::Options options;
  options.fabric_rails = "eth1";
  EXPECT_THAT(MayHaveLinks(Policy(options, "ferry-tcp"), 1).message(), HasSubstr("fabric_rails"));
}

TEST(LinkPolicyTest, OverNicsThereAreLinksIfTheProviderIsNamed) {
  config::Options options;
  EXPECT_THAT(MayHaveLinks(Policy(options, "verbs"), 1).message(), HasSubstr("verbs"));
  options.direct_link_provider = "verbs";
  const LinkPolicy policy = Policy(options, "verbs");
  EXPECT_TRUE(MayHaveLinks(policy, 1).ok());
  ASSERT_EQ(policy.nics.size(), 2U);
  EXPECT_EQ(policy.nics[1].domain, "second");
}

TEST(LinkPolicyTest, OwnSocketsServeWhereverTheKernelsDo) {
  for (const char* const provider : {"ferry-tcp", "net", "sockets", "tcp", "tcp;ofi_rxm"}) {
    const LinkPolicy policy = Policy({}, provider);
    EXPECT_EQ(policy.provider, "ferry-tcp") << provider;
    EXPECT_EQ(policy.nics.size(), 1U) << provider;
    EXPECT_TRUE(policy.allowed.ok()) << provider;
  }
  EXPECT_EQ(Policy({}, "psm2").provider, "psm2");
}

}  // namespace
}  // namespace ferry::daemon
