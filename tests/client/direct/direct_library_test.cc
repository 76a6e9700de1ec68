// libferry_direct.so as a process finds it.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <iterator>
#include <string>

#include "tests/client/direct/linked_rank.h"

namespace ferry::client {
namespace {

size_t Threads() {
  using Iterator = std::filesystem::directory_iterator;
  return static_cast<size_t>(std::distance(Iterator("/proc/self/task"), Iterator()));
}

TEST(DirectLibraryTest, HasTheVersionsOfItsHeader) { ASSERT_NE(OpenDirectLibrary(), nullptr); }

TEST(DirectLibraryTest, ItsSymbolsStayLocal) {
  ASSERT_NE(OpenDirectLibrary(), nullptr);
  EXPECT_EQ(dlsym(RTLD_DEFAULT, kDirectEntryName), nullptr);
  void* library = dlopen(direct_library, RTLD_NOW | RTLD_LOCAL);
  EXPECT_NE(dlsym(library, kDirectEntryName), nullptr);
  // These functions with a `const TransportOptions&`: it has one of the two.
  EXPECT_EQ(dlsym(library, "_ZN5ferry9transport18CreateTcpTransportERKNS0_16TransportOptionsE"),
            nullptr);
  EXPECT_EQ(dlsym(library, "_ZN5ferry9transport18CreateOfiTransportERKNS0_16TransportOptionsE"),
            nullptr);
}

// The first test of this process that opens an endpoint.
TEST(DirectLibraryTest, LibfabricIsOpenedOnlyWhereItIsNeeded) {
  LinkedRank rank(0, 2, {-1, -1});
  ASSERT_NO_FATAL_FAILURE(rank.OpenLinks());
  void* const libfabric = dlopen("libfabric.so.1", RTLD_NOW | RTLD_NOLOAD);
  EXPECT_EQ(libfabric != nullptr, std::string(link_provider) != "ferry-tcp");
}

TEST(DirectLibraryTest, StartsNoThread) {
  const size_t before = Threads();
  LinkedRank rank(0, 2, {-1, -1});
  ASSERT_NO_FATAL_FAILURE(rank.OpenLinks());
  EXPECT_EQ(Threads(), before);
}

TEST(DirectLibraryTest, EndpointHasTheAddressThatIsAskedFor) {
  for (const char* address : {"127.0.0.1", "localhost"}) {
    RankOptions options;
    options.source_address = address;
    LinkedRank rank(0, 2, {-1, -1}, options);
    ASSERT_NO_FATAL_FAILURE(rank.OpenLinks());
    EXPECT_GT(rank.links().AddressFor(1).size_bytes, 0U);
    EXPECT_LE(rank.links().AddressFor(1).size_bytes, kLinkAddressBytes);
    EXPECT_GE(rank.links().WaitFd(), 0);
  }
}

TEST(DirectLibraryTest, RefusesAnAddressOfAnotherMachine) {
  const DirectApi* api = OpenDirectLibrary();
  ASSERT_NE(api, nullptr);
  const LinkedRank rank(0, 2, {-1, -1});
  DirectSetup setup;
  setup.view = rank.view();
  setup.job_id = "job";
  setup.provider = link_provider;
  setup.operation_timeout_ns = 1'000'000'000;
  for (const char* address : {"192.0.2.1", "no such host"}) {
    setup.source_address = address;
    const auto opened = api->open(setup, nullptr);
    EXPECT_FALSE(opened.ok());
    EXPECT_NE(opened.status().message(), "");
  }
}

TEST(DirectLibraryTest, RefusesAProviderThatItDoesNotHave) {
  const DirectApi* api = OpenDirectLibrary();
  ASSERT_NE(api, nullptr);
  const LinkedRank rank(0, 2, {-1, -1});
  DirectSetup setup;
  setup.view = rank.view();
  setup.job_id = "job";
  setup.provider = "no-such";
  setup.source_address = "127.0.0.1";
  setup.operation_timeout_ns = 1'000'000'000;
  const auto opened = api->open(setup, nullptr);
  ASSERT_FALSE(opened.ok());
  EXPECT_NE(opened.status().message().find("no-such"), std::string::npos)
      << opened.status().message();
}

}  // namespace
}  // namespace ferry::client
