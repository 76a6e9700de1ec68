// Which transport the options name.
#include "transports/loader/loader.h"

#include <gtest/gtest.h>

#include <filesystem>

namespace ferry::transport {
namespace {

bool HasNics() {
  return std::filesystem::exists("/sys/class/infiniband") ||
         std::filesystem::exists("/sys/class/cxi");
}

TEST(LoaderTest, AutoTakesOurOwnSocketsWhereThereIsNoNic) {
  if (HasNics()) {
    GTEST_SKIP() << "this machine has a NIC that libfabric may have a provider for";
  }
  StatusOr<std::unique_ptr<Transport>> transport = OpenTransport({});
  ASSERT_TRUE(transport.ok()) << transport.status().ToString();
  EXPECT_EQ((*transport)->Describe().provider, "ferry-tcp");
  EXPECT_EQ((*transport)->Describe().domain, "lo");
  EXPECT_EQ((*transport)->capabilities().max_attachment_bytes, 512U << 10);
}

TEST(LoaderTest, ANamedProviderIsTakenOrRefused) {
  TransportOptions options;
  options.provider = "tcp";
  StatusOr<std::unique_ptr<Transport>> transport = OpenTransport(options);
  ASSERT_TRUE(transport.ok()) << transport.status().ToString();
  EXPECT_EQ((*transport)->Describe().provider, "tcp;ofi_rxm");
  options.provider = "nosuch";
  EXPECT_EQ(OpenTransport(options).status().code(), ErrorCode::kUnsupported);
}

TEST(LoaderTest, RailsAreNamedByAddressOrInterface) {
  TransportOptions options;
  options.provider = "ferry-tcp";
  options.rails = {"127.0.0.2", "lo"};
  StatusOr<std::unique_ptr<Transport>> transport = OpenTransport(options);
  ASSERT_TRUE(transport.ok()) << transport.status().ToString();
  const std::vector<Transport*> rails = (*transport)->Rails();
  ASSERT_EQ(rails.size(), 3U);
  EXPECT_EQ(rails[1]->Describe().address.substr(0, 10), "127.0.0.2:");
  EXPECT_EQ(rails[2]->Describe().domain, "lo");
  EXPECT_TRUE((*transport)->capabilities().lands_in_place);
  options.rails = {"nosuch0"};
  EXPECT_EQ(OpenTransport(options).status().code(), ErrorCode::kUnsupported);
}

TEST(LoaderTest, ListsOurOwnFirst) {
  const std::vector<ListedProvider> providers = ListProviders();
  ASSERT_FALSE(providers.empty());
  EXPECT_EQ(providers[0].name, "ferry-tcp");
  EXPECT_TRUE(providers[0].usable);
}

}  // namespace
}  // namespace ferry::transport
