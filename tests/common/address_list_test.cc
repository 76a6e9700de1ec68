#include "common/address_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace ferry {
namespace {

bool Has(const std::string& list, const std::string& host) {
  const StatusOr<AddressList> parsed = AddressList::Parse(list);
  EXPECT_TRUE(parsed.ok()) << parsed.status().message();
  return parsed.ok() && parsed->Contains(host);
}

TEST(AddressListTest, AnEmptyTextIsAnEmptyList) {
  EXPECT_TRUE(AddressList::Parse("")->empty());
  EXPECT_FALSE(Has("", "10.0.0.1"));
}

TEST(AddressListTest, HasAddressesByNumber) {
  EXPECT_TRUE(Has("10.0.0.1,10.0.0.7", "10.0.0.7"));
  EXPECT_FALSE(Has("10.0.0.1,10.0.0.7", "10.0.0.70"));
  EXPECT_TRUE(Has("fd00::7", "fd00:0:0::7"));
  EXPECT_TRUE(Has("10.0.0.7", "::ffff:10.0.0.7")) << "the same machine";
}

TEST(AddressListTest, HasBlocks) {
  EXPECT_TRUE(Has("10.1.0.0/16", "10.1.255.3"));
  EXPECT_FALSE(Has("10.1.0.0/16", "10.2.0.3"));
  EXPECT_TRUE(Has("10.1.16.0/20", "10.1.31.255"));
  EXPECT_FALSE(Has("10.1.16.0/20", "10.1.32.0"));
  EXPECT_TRUE(Has("0.0.0.0/0", "192.0.2.1"));
  EXPECT_FALSE(Has("0.0.0.0/0", "fd00::1"));
  EXPECT_TRUE(Has("fd00::/8", "fdff::1"));
  EXPECT_FALSE(Has("fd00::/8", "fe80::1"));
  EXPECT_TRUE(Has("10.1.0.7/32", "10.1.0.7"));
  EXPECT_FALSE(Has("10.1.0.7/32", "10.1.0.6"));
}

TEST(AddressListTest, HasNamesAndDomains) {
  EXPECT_TRUE(Has("node1,Node2", "NODE2"));
  EXPECT_FALSE(Has("node1", "node12"));
  EXPECT_TRUE(Has(".cluster.example", "n7.cluster.example"));
  EXPECT_FALSE(Has(".cluster.example", ".cluster.example"));
  EXPECT_FALSE(Has(".cluster.example", "cluster.example"));
  EXPECT_FALSE(Has(".cluster.example", "n7.cluster.example.org"));
  EXPECT_FALSE(Has(".cluster.example", "ncluster.example"));
  EXPECT_FALSE(Has("10.0.0.0/8", "ten.example")) << "no name is looked up";
}

TEST(AddressListTest, NamesThePartThatIsWrong) {
  for (const char* part : {"10.0.0.1/33", "fd00::/129", "10.0.0.0/", "10.0.0.0/x", "10.0.0",
                           "node 7", "", "10.0.0.1-9"}) {
    const StatusOr<AddressList> list = AddressList::Parse("a," + std::string(part) + ",b");
    EXPECT_EQ(list.status().code(), ErrorCode::kConfiguration) << part;
    EXPECT_THAT(list.status().message(), testing::HasSubstr("\"" + std::string(part) + "\""));
  }
}

}  // namespace
}  // namespace ferry
