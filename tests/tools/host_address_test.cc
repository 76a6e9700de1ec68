#include "tools/ferryrun/host_address.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/environment.h"

namespace ferry::tools {
namespace {

using testing::Contains;
using testing::HasSubstr;

AddressQuestion Question() {
  return {.network = "",
          .named = {},
          .default_interface = "",
          .addresses = {{"lo", "127.0.0.1", true},
                        {"lo", "::1", true},
                        {"eth0", "10.0.0.7", false},
                        {"ib0", "10.1.255.7", false},
                        {"ib0", "fd00:1::7", false}}};
}

TEST(HostAddressTest, ANetworkDecides) {
  AddressQuestion question = Question();
  question.named = {"10.0.0.7"};
  for (const auto& [network, address] : {std::pair{"ib0", "10.1.255.7"},
                                         {"10.1.0.0/16", "10.1.255.7"},
                                         {"fd00:1::/64", "fd00:1::7"},
                                         {"10.0.0.7", "10.0.0.7"},
                                         {"0.0.0.0/0", "127.0.0.1"}}) {
    question.network = network;
    const auto chosen = ChooseAddress(question);
    ASSERT_TRUE(chosen.ok()) << network << ": " << chosen.status().message();
    EXPECT_EQ(*chosen, address) << network;
  }
}

TEST(HostAddressTest, ANetworkThatIsNotThereIsRefused) {
  AddressQuestion question = Question();
  question.network = "10.2.0.0/16";
  EXPECT_THAT(ChooseAddress(question).status().message(),
              HasSubstr("no address in --network 10.2.0.0/16; there is: 10.0.0.7 (eth0), "));
  question.network = "eth7";
  EXPECT_EQ(ChooseAddress(question).status().code(), ErrorCode::kNotFound);
  for (const char* wrong : {"10.2.0.0/33", "10.2.0/16", "10.0.0.0/", "eth0/24"}) {
    question.network = wrong;
    EXPECT_THAT(ChooseAddress(question).status().message(),
                HasSubstr("is neither an interface nor a network"))
        << wrong;
  }
}

TEST(HostAddressTest, ThenTheNameThenTheDefaultRoute) {
  AddressQuestion question = Question();
  question.default_interface = "eth0";
  question.named = {"127.0.0.1", "10.1.255.7"};  // a name may stand for loopback, as Debian does it
  EXPECT_EQ(*ChooseAddress(question), "10.1.255.7");
  question.named = {"127.0.0.1"};
  EXPECT_EQ(*ChooseAddress(question), "10.0.0.7");
}

TEST(HostAddressTest, ElseThereMustBeOneOnly) {
  AddressQuestion question = Question();
  EXPECT_THAT(ChooseAddress(question).status().message(),
              HasSubstr("several addresses, 10.0.0.7 (eth0), 10.1.255.7 (ib0), fd00:1::7 (ib0): "
                        "name the network with --network"));
  question.addresses.resize(3);
  EXPECT_EQ(*ChooseAddress(question), "10.0.0.7");
  question.addresses.resize(2);
  EXPECT_EQ(ChooseAddress(question).status().code(), ErrorCode::kNotFound);
}

TEST(HostAddressTest, KnowsThisHost) {
  EXPECT_TRUE(IsThisHost("localhost"));
  EXPECT_TRUE(IsThisHost("127.0.0.1"));
  EXPECT_TRUE(IsThisHost(config::HostName()));
  EXPECT_FALSE(IsThisHost("192.0.2.1"));  // kept for documents
  const auto own = OwnAddresses();
  ASSERT_TRUE(own.ok());
  for (const OwnAddress& address : *own) {
    EXPECT_TRUE(IsThisHost(address.text)) << address.text;
  }
}

}  // namespace
}  // namespace ferry::tools
