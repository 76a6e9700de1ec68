// What comes along when libfabric's library is opened.
#include "transports/ofi/library.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rdma/fi_errno.h>

#include <fstream>
#include <iterator>
#include <string>

namespace ferry::transport {
namespace {

using testing::HasSubstr;
using testing::Not;

// Their constructors take 0.1 s each, for cards that hardly anybody has.
TEST(LibraryTest, LibrariesOfOldCardsStayClosed) {
  const StatusOr<const Libfabric*> library = OpenLibfabric();
  ASSERT_TRUE(library.ok()) << library.status().message();
  std::ifstream file("/proc/self/maps");
  const std::string maps{std::istreambuf_iterator<char>(file), {}};
  EXPECT_THAT(maps, HasSubstr("libfabric.so"));
  EXPECT_THAT(maps, Not(HasSubstr("libinfinipath")));
  EXPECT_THAT(maps, Not(HasSubstr("libpsm2")));
}

TEST(LibraryTest, ProvidersAreFoundWithoutThem) {
  const Libfabric& library = OpenedLibfabric();
  fi_info* found = nullptr;
  ASSERT_EQ(library.getinfo(FI_VERSION(1, 11), nullptr, nullptr, 0, nullptr, &found), 0);
  std::string names;
  for (const fi_info* info = found; info != nullptr; info = info->next) {
    names += std::string(info->fabric_attr->prov_name) + " ";
  }
  library.freeinfo(found);
  EXPECT_THAT(names, HasSubstr("tcp"));
  EXPECT_THAT(names, HasSubstr("sockets"));
  EXPECT_THAT(names, Not(HasSubstr("psm ")));
  EXPECT_THAT(names, Not(HasSubstr("psm2")));
}

}  // namespace
}  // namespace ferry::transport
